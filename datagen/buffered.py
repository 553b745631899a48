"""Writes texts to Kafka through a buffer on disk: for sources that cannot wait, such as an agent.

All messages go to the buffer first. A thread hands them to an idempotent producer, in order, some thousand at a time,
and removes them when Kafka has acknowledged them. After a kill, or after a fatal error of a producer, the next producer
does not know what the one before it delivered: it looks into the topic first, see `readback`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Self
from urllib.parse import quote

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from datagen import readback
from datagen.buffer import DiskBuffer, Parcel
from datagen.kafka_writer import GRACE, producer_settings
from datagen.outage import Dropped, Outage, Standing, Tell, watched
from datagen.sinks import make_topics
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import megabytes
from pipelines.contracts.settings import Settings

_WINDOW = 5_000
"""Largest number of messages that a producer has at a time, for which its successor may have to look."""
_REFUSED = (
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG_SIZE,
    KafkaError.INVALID_MSG,
    KafkaError.INVALID_RECORD,
)
_SETTLE = 1.0
"""Seconds to wait before looking into the topic, so that the broker can finish what the former producer sent."""
_RETRY = 1.0
_ANSWER = 3.0
"""Longest time for a broker to say which topics it has, seconds."""


class BufferedWriter:
    """A writer that never waits for Kafka; a context manager. Messages not delivered at its end stay in the buffer.

    Args:
        address: Returns ``host:port`` of a broker, or raises a `NewnormalError` that says why there is none yet.
        buffer: Where messages wait; it is closed at the end.
        outage: Reports outages; it is updated with the state of the writer.
        prepare: Called with the address before anything is sent there, to create the topics.
    """

    def __init__(
        self, address: Callable[[], str], buffer: DiskBuffer, outage: Outage, prepare: Callable[[str], object]
    ) -> None:
        self.delivered, self.buffer, self.outage = 0, buffer, outage
        self._address, self._prepare = address, prepare
        self._closing, self._fresh, self._block = threading.Event(), threading.Event(), ExitStack()
        self._pending: dict[int, int] = {}  # rows that the producer has: their messages that are not acknowledged
        self._doubtful = buffer.last  # rows up to here may have been sent by a producer that is no more
        self._failure = ""
        self._thread = threading.Thread(target=self._run, daemon=True, name="buffered writer")

    def __enter__(self) -> Self:
        self._block.enter_context(watched(self.outage, self._standing))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._block:
            self._closing.set()
            self._thread.join(GRACE)
        self.buffer.close()

    def write(self, topic: str, values: Sequence[str], keys: Sequence[str]) -> None:
        """Adds texts to the buffer, each with its key."""
        self.buffer.append(topic, keys, values)
        self._fresh.set()

    def flush(self) -> None:
        """Waits until all messages are delivered, or until Kafka has not answered for 5 seconds."""
        begun = time.monotonic()
        while self.buffer.waiting and min(time.monotonic() - begun, self.outage.silence) < GRACE:
            self._closing.wait(0.05)

    def _standing(self) -> Standing:
        return Standing(self.buffer.waiting, self.delivered)

    def _run(self) -> None:
        while not self._closing.is_set():
            self.outage.reason = self._attempt()
            self._closing.wait(_RETRY)

    def _attempt(self) -> str:
        """Sends messages until sending fails; returns the reason if it is more than a missing answer."""
        try:
            bootstrap = self._address()
        except NewnormalError as error:
            return error.what
        try:
            self._send(bootstrap)
        except NewnormalError as error:
            return "" if error.code == "KAFKA_UNREACHABLE" else error.what
        except Exception as error:  # this thread must go on after any error, and reports it
            return f"{type(error).__name__}: {error}"
        return self._failure

    def _send(self, bootstrap: str) -> None:
        """Sends messages as they come, until the end or until the producer cannot be used any more."""
        self._prepare(bootstrap)
        self._look_back(bootstrap)
        self._pending, self._failure = {}, ""
        self.buffer.take_back()
        producer = Producer(producer_settings(bootstrap))
        self.outage.reason = ""
        try:
            while not (self._closing.is_set() or self._failure or self._moved(bootstrap)):
                self._fresh.clear()
                self._hand_over(producer)
                if self._pending:
                    producer.poll(0.02 if self.outage.silence < 2 else 0.5)
                    self._acknowledge()
                else:
                    self._fresh.wait(0.5)
        finally:
            producer.purge(blocking=False)
            producer.poll(0)

    def _look_back(self, bootstrap: str) -> None:
        """Removes from the buffer the messages that former producers have delivered."""
        doubtful = [parcel for parcel in self.buffer.head(2 * _WINDOW) if parcel.number <= self._doubtful]
        if not doubtful:
            return
        self._closing.wait(_SETTLE)
        there = readback.delivered(bootstrap, doubtful)
        for parcel in doubtful:
            gone = [index for index in parcel.left if readback.name(parcel, index) in there]
            if gone:
                values = [None if index in gone else value for index, value in enumerate(parcel.values)]
                self.buffer.shrink(replace(parcel, values=values))
                self.delivered += len(gone)

    def _hand_over(self, producer: Producer) -> None:
        room = _WINDOW - sum(self._pending.values())
        for parcel in self.buffer.hand_over(room) if room > 0 else ():
            self._pending[parcel.number] = len(parcel.left)
            self._doubtful = max(self._doubtful, parcel.number)
            for index in parcel.left:
                self._produce(producer, parcel, index)

    def _produce(self, producer: Producer, parcel: Parcel, index: int) -> None:
        report, name = partial(self._on_delivery, parcel), readback.name(parcel, index)
        value, key = parcel.values[index], parcel.keys[index]
        try:
            producer.produce(parcel.topic, value, key, on_delivery=report, headers={readback.HEADER: name})
        except KafkaException as error:
            report(error.args[0], None)

    def _on_delivery(self, parcel: Parcel, error: KafkaError | None, _message: Message | None) -> None:
        if error is not None and error.code() not in _REFUSED:
            self._failure = self._failure or f"{parcel.topic}: {error.str()}"
            return
        self._pending[parcel.number] -= 1
        if error is None:
            self.delivered += 1
        else:
            self.outage.drop(Dropped(1, parcel.taken, parcel.taken, f"Kafka refused them: {error.str()}"))

    def _acknowledge(self) -> None:
        done = [number for number, left in self._pending.items() if not left]
        if done:
            self.buffer.done(done)
            self._pending = {number: left for number, left in self._pending.items() if left}

    def _moved(self, bootstrap: str) -> bool:
        """Whether Kafka, which does not answer, has moved to another address."""
        if self.outage.silence < GRACE:
            return False
        try:
            return self._address() != bootstrap
        except NewnormalError:
            return False  # it is away, and may come back at the old address


@contextmanager
def buffered(settings: Settings, name: str, address: Callable[[], str], tell: Tell) -> Iterator[BufferedWriter]:
    """A writer to the topics of the agents, with its buffer in the state directory.

    Args:
        settings: The settings.
        name: Name of the source; a buffer belongs to one source at a time.
        address: See `BufferedWriter`.
        tell: Function that is called with sentences about outages, dropped messages, and messages that stay.

    Raises:
        NewnormalError: ``BUFFER_UNUSABLE``.
    """
    outage = Outage(tell, "in the buffer")
    path = settings.common_folder("buffer") / f"{quote(name, safe='')}.sqlite"
    size = megabytes(settings.buffer.size) * 2**20
    buffer = DiskBuffer(path, size, duration_ms(settings.buffer.age), outage.drop)
    if buffer.waiting:
        tell(f"{buffer.waiting:,} records of an earlier run wait in the buffer {path}; they are sent first")
    try:
        with BufferedWriter(address, buffer, outage, lambda found: make_topics(settings, found, _ANSWER)) as writer:
            yield writer
    finally:
        if buffer.waiting:
            tell(f"{buffer.waiting:,} records stay in the buffer {path}; the next start sends them")
        for dropped in outage.dropped():
            tell(f"in all, {dropped}")
