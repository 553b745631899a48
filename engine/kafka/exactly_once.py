"""Exactly-once writes to Kafka: one transaction per micro-batch, with the batch's number committed inside it.

With this order a crash at any point neither loses nor doubles output:
  1. Read the ledger: the number of the last batch whose transaction committed (a consumer-group offset).
  2. A batch whose number is not higher was written before: skip it.
  3. Begin a transaction, produce all messages of the batch, add the batch's number as the group's offset, commit.
  4. Spark commits the batch to its checkpoint. A crash before this makes Spark repeat the batch: step 2 skips it.
A writer that was thought dead is fenced by the shared transactional id (KIP-98, KIP-890).

When Kafka does not answer, the connections are given up and all steps are repeated over new ones, for as long as it
takes. The first request of the new connection commits or aborts the old transaction, and step 1 then says which.

The driver writes the output of all shards, or the task of each shard its own: then each shard has a transactional id
and a ledger of its own, and only one driver's tasks may write. `engine.kafka.shard_output` says which driver's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from engine.address import kafka_options
from engine.kafka.diagnosis import forbidden
from engine.kafka.patience import NoAnswerError, StoppedError, within
from engine.runtime.messages import Outgoing
from engine.spec.errors import NewnormalError

LEDGER_TOPIC = "newnormal.ledger"
_ANSWER_SECONDS = 15.0
_CLOSE_SECONDS = 5.0
_MOST_PAUSE_SECONDS = 2.0
_MOST_OVERTAKEN = 5
_NO_BATCH = -1
GENERATION = "generation"
"""In place of a checkpoint's identity: the group of a job whose offset is the generation of the driver, plus 1."""
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
_ABSENT = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.CONCURRENT_TRANSACTIONS,
)
"""Errors of a broker that is away, hangs or has just started: the same request may succeed later."""
T = TypeVar("T")
log = structlog.get_logger()


def ledger_group(job: str, checkpoint: str = "", shard: int | None = None) -> str:
    """Name of the consumer group whose offset is the ledger of a job; without a checkpoint, how all of its begin.

    >>> ledger_group("words", "5a1c"), ledger_group("words", "5a1c", 3), ledger_group("words")
    ('words.ledger.5a1c', 'words.ledger.5a1c.3', 'words.ledger.')
    """
    return f"{job}.ledger.{checkpoint}" + ("" if shard is None else f".{shard}")


@dataclass(frozen=True)
class Shard:
    """A shard that writes its own output.

    Args:
        number: Number of the shard.
        generation: Generation of the driver that planned the micro-batch; a newer driver's tasks take its place.
        floor: Number of the last micro-batch that the driver wrote for all shards; -1 without any.
    """

    number: int
    generation: int
    floor: int = -1


class TransactionalWriter:
    """Writes the micro-batches of one job; connects with the first one.

    Args:
        bootstrap: ``host:port`` of a broker.
        job: Name from which the transactional id and the group of the ledger are formed.
        ledger: Topic for which the batch numbers are committed; it has no messages.
        epoch: Identity of the checkpoint that numbers the batches: a new checkpoint counts from 0 again.
        stop: Event that ends all waiting for Kafka.
        shard: The shard whose output is written; ``None``: the output of all shards.
    """

    def __init__(
        self,
        bootstrap: str,
        job: str,
        ledger: str = LEDGER_TOPIC,
        epoch: str = "",
        stop: threading.Event | None = None,
        shard: Shard | None = None,
    ) -> None:
        self.bootstrap, self.job, self.ledger, self.epoch = bootstrap, job, ledger, epoch
        self.shard = shard
        self.number = None if shard is None else shard.number
        self.stop = stop or threading.Event()
        self._connection: _Connection | None = None
        self._old = threading.Event()

    def renew(self) -> None:
        """Makes the next batch use new connections, as older ones may never answer after an outage. Thread-safe."""
        self._old.set()

    def begin(self) -> int:
        """Begins transactions: fences all that write as this job (and shard); waits and fails as `write` does.

        Returns:
            Number of the last micro-batch in the ledger, which nobody else can raise any more; -1 without any.
        """
        self.write(_NO_BATCH, ())
        assert self._connection is not None
        return self._connection.committed

    def write(self, batch_id: int, messages: Iterable[Outgoing]) -> bool:
        """Writes a batch unless it was written before; returns whether this call wrote it.

        Waits as long as Kafka does not answer.

        Raises:
            NewnormalError: ``JOB_FENCED`` if another process has begun to write as this job; ``KAFKA_NOT_ALLOWED``.
            StoppedError: ``stop`` was set while Kafka did not answer; the batch is repeated at the next start.
            KafkaException: Kafka refused something; the transaction was aborted.
        """
        batch, began, tried, overtaken = list(messages), time.monotonic(), 0, 0
        while True:
            try:
                written = self._try(batch_id, batch, again=tried > 0)
            except NoAnswerError as error:
                reason = str(error)
            except KafkaException as error:
                if self.shard is not None and error.args[0].code() in _FENCED and overtaken < _MOST_OVERTAKEN:
                    # another process has written as this shard since; the ledger says what, and for which driver
                    overtaken += 1
                    self.close()
                    continue
                self._refused(error.args[0])
                reason = error.args[0].str()
            else:
                if tried:
                    log.info(
                        "kafka answers again, the job goes on",
                        job=self.job,
                        waited_s=round(time.monotonic() - began, 1),
                    )
                return written
            self.close()
            if not tried:
                log.warning("kafka does not answer, the micro-batch is written again", job=self.job, reason=reason)
            tried += 1
            self.stop.wait(min(0.2 * 2.0**tried, _MOST_PAUSE_SECONDS))

    def _try(self, batch_id: int, messages: Sequence[Outgoing], again: bool) -> bool:
        if self._old.is_set():
            self._old.clear()
            self.close()
        if self._connection is None:
            self._connection = _Connection(self)
        if batch_id > self._connection.committed:
            self._connection.write(batch_id, messages)
        elif not again:
            if batch_id != _NO_BATCH:
                log.info("batch was written before the restart, skipped", job=self.job, batch=batch_id)
            return False
        return True

    def _refused(self, error: KafkaError) -> None:
        """Raises errors that waiting does not mend."""
        if error.code() in _FENCED:
            self.close()
            raise fenced(f"another process has begun to write as {self.job}: {error.str()}", self.bootstrap)
        if not (error.retriable() or error.code() in _ABSENT):
            if self._connection:
                self._connection.abort()
            self.close()
            now = "the micro-batch was not written, and is written again at the next start"
            if refusal := forbidden(error, f"to write as {self.job}", self.bootstrap, now):
                raise refusal
            raise KafkaException(error)

    def close(self) -> None:
        """Gives up the connections without waiting for them."""
        if self._connection:
            self._connection.close()
            self._connection = None


def fenced(reason: str, bootstrap: str) -> NewnormalError:
    """The error of a process whose place another one has taken."""
    accepted, now = "one process per job and namespace", "the micro-batch was not written"
    return NewnormalError("JOB_FENCED", reason, bootstrap, accepted, now)


class _Connection:
    """A producer that has fenced all others of the job, and the last batch number in the ledger at that time."""

    def __init__(self, writer: TransactionalWriter) -> None:
        self.stop, bootstrap = writer.stop, writer.bootstrap
        quiet: dict[str, Any] = {**kafka_options(bootstrap), "log_level": 0, "reconnect.backoff.max.ms": 1000}
        self.slot = TopicPartition(writer.ledger, 0)
        self.consumer: Any = Consumer(quiet | _group(ledger_group(writer.job, writer.epoch, writer.number)))
        self.producer: Any = Producer(
            quiet
            | {
                "transactional.id": f"{writer.job}.writer" + ("" if writer.number is None else f".{writer.number}"),
                "transaction.timeout.ms": 120_000,
                "linger.ms": 2,
                # with more, librdkafka's thread keeps a core busy while a slow broker answers (decision 0055)
                "max.in.flight.requests.per.connection": 1,
                "message.max.bytes": 15_000_000,
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 1_048_576,
            }
        )
        try:
            self._call("the start of transactions", lambda: self.producer.init_transactions(_ANSWER_SECONDS))
            self.committed = self._read(self.consumer)
            if writer.shard is not None:
                self.committed = max(self.committed, writer.shard.floor)
                generations: Any = Consumer(quiet | _group(ledger_group(writer.job, GENERATION)))
                newest = self._read(generations)
                if newest not in (-1, writer.shard.generation):  # a smaller one, too: clocks may be set back
                    what = f"another driver runs {writer.job}: generation {newest}, not {writer.shard.generation}"
                    raise fenced(what, bootstrap)
        except BaseException:
            self.close()
            raise

    def write(self, batch_id: int, messages: Sequence[Outgoing]) -> None:
        """Writes one batch in one transaction."""
        self.producer.begin_transaction()
        for outgoing in messages:
            self._produce(outgoing)
        self._flush()
        offsets = [TopicPartition(self.slot.topic, self.slot.partition, batch_id + 1)]
        group = self.consumer.consumer_group_metadata()
        self._call(
            "the ledger's entry", lambda: self.producer.send_offsets_to_transaction(offsets, group, _ANSWER_SECONDS)
        )
        self._call("the commit", lambda: self.producer.commit_transaction(_ANSWER_SECONDS))
        self.committed = batch_id

    def abort(self) -> None:
        """Aborts the transaction if possible; otherwise the next connection does."""
        try:
            self._call("the abort", lambda: self.producer.abort_transaction(_ANSWER_SECONDS))
        except Exception as error:
            log.warning("abort failed; the next writer or the broker ends the transaction", error=str(error))

    def close(self) -> None:
        """Ends both clients; if a call of theirs does not return, a thread is left to wait for it.

        A producer that still tried to begin transactions would fence its successor.
        """
        held: list[Any] = [self.producer, self.consumer]
        self.producer = self.consumer = None  # these are the last references: without them the clients end
        with suppress(NoAnswerError, StoppedError):
            within(_CLOSE_SECONDS, held.clear, self.stop, "the end of a connection")

    def _read(self, group: Any) -> int:
        def committed() -> int:
            (slot,) = group.committed([self.slot], timeout=_ANSWER_SECONDS)
            return slot.offset - 1 if slot.offset >= 0 else -1

        return self._call("the ledger", committed)

    def _call(self, name: str, call: Callable[[], T]) -> T:
        return within(_ANSWER_SECONDS + 1.0, call, self.stop, name)

    def _produce(self, outgoing: Outgoing) -> None:
        topic, partition, produce = outgoing.topic, outgoing.partition, self.producer.produce
        for key, value in zip(outgoing.keys.to_pylist(), outgoing.values.to_pylist(), strict=True):
            while True:
                try:
                    produce(topic, value, key or None, partition)
                    break
                except BufferError:
                    self._flush(to=500_000)

    def _flush(self, to: int = 0) -> None:
        """Waits until at most ``to`` messages are under way; fails if none is acknowledged for a while."""
        left, moved = len(self.producer), time.monotonic()
        while left > to:
            if self.stop.is_set():
                raise StoppedError("the messages of a micro-batch")
            self.producer.flush(0.1)
            now = len(self.producer)
            if now < left:
                left, moved = now, time.monotonic()
            elif time.monotonic() > moved + _ANSWER_SECONDS:
                raise NoAnswerError(f"{left} messages were not taken within {_ANSWER_SECONDS:g} s")


def _group(name: str) -> dict[str, Any]:
    return {"group.id": name, "enable.auto.commit": False}
