"""Sends the messages of dead letters again, and marks the letters, both in one transaction of Kafka.

If the process dies on the way, neither the messages nor the marks are there; a second retry of the same letters, also
one at the same time, sends nothing. A message that comes after the watermark has passed its time is late, like any
other: it revises its window within the allowed lateness, and otherwise goes to the topic of late records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, Message, Producer

from engine.address import kafka_options
from engine.formats.dead_letters import DeadLetter
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.query.dead_letters.again import Sending, SourceOf, sendings
from pipelines.query.dead_letters.letters import Letter, place
from pipelines.query.dead_letters.originals import Originals

_SECONDS = 30.0
_AT_ONCE, _BYTES_AT_ONCE = 500, 32 * 2**20
"""Most letters, and about the most bytes, of one transaction."""

Others = Callable[[Letter], list[Letter]]
"""The letters of other jobs that refused the same records.

Raises:
    NewnormalError: ``LETTER_SHARED`` if another job reads the topic and has used the message.
"""


@dataclass
class Retried:
    """What a retry has done.

    Attributes:
        sent: The letters whose messages were sent again, each with the places of the new messages.
        refused: The letters of which nothing was sent, each with the reason.
    """

    sent: list[tuple[Letter, str]] = field(default_factory=list)
    refused: list[tuple[Letter, NewnormalError]] = field(default_factory=list)


@dataclass(frozen=True)
class _Ready:
    """A letter, the letters of other jobs that are marked with it, and the messages that are sent."""

    letter: Letter
    others: list[Letter]
    parts: list[Sending]

    @property
    def letters(self) -> list[Letter]:
        return [self.letter, *self.others]

    @property
    def bytes(self) -> int:
        return sum(len(part.value) for part in self.parts)


class Retry:
    """Sends dead letters again; one process of a version at a time.

    Args:
        settings: The settings of the version, with the address of Kafka filled in.
        source_of: The inputs of the jobs.
        others: The letters of other jobs.
        force: True if letters are sent that were sent before, would be refused again, or that another job has used.
    """

    def __init__(self, settings: Settings, source_of: SourceOf, others: Others, *, force: bool = False) -> None:
        self._settings, self._source_of, self._others, self._force = settings, source_of, others, force

    def run(self, read: Callable[[], Sequence[Letter]], now: int) -> Retried:
        """Sends letters again.

        Args:
            read: Reads the letters. It is called when any earlier retry has ended or was cut off, so that it sees the
                marks of that one.
            now: The present, epoch milliseconds.

        Raises:
            NewnormalError: ``KAFKA_READ_FAILED``; ``LETTERS_NOT_SENT`` if Kafka does not take the messages: what was
                sent before is marked.
        """
        done, producer = Retried(), self._producer()
        ready: list[_Ready] = []
        marked: set[tuple[object, ...]] = set()
        with Originals(self._settings.kafka.bootstrap or "") as originals:
            for chosen in read():
                try:
                    if chosen.key in marked:  # with the letter of another job about the same records
                        raise _retried_before(chosen)
                    ready.append(_Ready(chosen, *self._decided(chosen, originals, now)))
                except NewnormalError as error:
                    done.refused.append((chosen, error))
                    continue
                marked |= {letter.key for letter in ready[-1].letters}
                if len(ready) >= _AT_ONCE or sum(one.bytes for one in ready) >= _BYTES_AT_ONCE:
                    done.sent += self._sent(ready, producer, now)
                    ready = []
        done.sent += self._sent(ready, producer, now) if ready else []
        return done

    def _decided(self, chosen: Letter, originals: Originals, now: int) -> tuple[list[Letter], list[Sending]]:
        """The letters that are marked with this one, and the messages that are sent."""
        if chosen.mark is not None and not self._force:
            raise _retried_before(chosen)
        others = [] if self._force else self._others(chosen)
        letter = chosen.letter
        original = originals.read(letter.topic, letter.partition, letter.offset)
        if original is None:
            what = "the message is no longer in its topic: its retention time has passed, or it was deleted"
            accepted = "a message that Kafka still has; the sender can send it again"
            raise NewnormalError("LETTER_GONE", what, chosen.place, accepted, "nothing was sent")
        return others, sendings(letter, original, self._source_of(letter), now, force=self._force)

    def _sent(self, ready: Sequence[_Ready], producer: Producer, now: int) -> list[tuple[Letter, str]]:
        """Sends messages and writes the marks in one transaction."""
        places: list[list[str]] = [[] for _ in ready]
        try:
            producer.begin_transaction()
            for one, mine in zip(ready, places, strict=True):
                for part in one.parts:
                    _produce(producer, part.topic, part.value, mine, part)
            producer.flush(_SECONDS)
            sent = [(one.letter, ", ".join(mine)) for one, mine in zip(ready, places, strict=True)]
            for one, (_, again) in zip(ready, sent, strict=True):
                for letter in one.letters:
                    mark = letter.letter.model_copy(update={"retried": now, "retried_as": again, "payload": ""})
                    _produce(producer, letter.home, mark.to_json())
            producer.commit_transaction(_SECONDS)  # fails if any of the messages was not taken
        except KafkaException as error:
            with suppress(KafkaException):
                producer.abort_transaction(_SECONDS)
            what, where = error.args[0].str(), self._settings.kafka.bootstrap or ""
            now_ = "nothing of this transaction was sent"
            raise NewnormalError("LETTERS_NOT_SENT", what, where, "a broker that answers", now_) from None
        return sent

    def _producer(self) -> Producer:
        options: dict[str, Any] = {**kafka_options(self._settings.kafka.bootstrap or ""), "log_level": 0}
        options |= {"transactional.id": f"{self._settings.owner}deadletter.retry", "message.max.bytes": 15_000_000}
        producer = Producer(options)
        try:
            producer.init_transactions(_SECONDS)
        except KafkaException as error:
            where = self._settings.kafka.bootstrap or ""
            what = error.args[0].str()
            raise NewnormalError("LETTERS_NOT_SENT", what, where, "a broker that answers", "nothing was sent") from None
        return producer


def _retried_before(letter: Letter) -> NewnormalError:
    mark: DeadLetter | None = letter.mark
    as_what = f" as {mark.retried_as}" if mark and mark.retried_as else ""
    what = f"it was sent again before{as_what}"
    return NewnormalError("LETTER_RETRIED", what, letter.place, "--force sends it once more", "nothing was sent")


def _produce(
    producer: Producer, topic: str, value: bytes, places: list[str] | None = None, part: Sending | None = None
) -> None:
    def delivered(error: object, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is None and places is not None and partition is not None and offset is not None:
            places.append(place(topic, partition, offset))

    options: dict[str, Any] = {} if part is None else {"partition": part.partition, "headers": list(part.headers)}
    producer.produce(topic, value, key=part.key if part else None, on_delivery=delivered, **options)
