"""Exactly-once writes to Kafka: one transaction a micro-batch, with the batch's number committed inside it.

The order, so that a crash at any point neither loses nor doubles:
  1. Read the ledger: the number of the last batch whose transaction committed (a consumer-group offset).
  2. A batch whose number is not higher was written before: skip it.
  3. Begin a transaction, produce all messages of the batch, add the batch's number as the group's offset, commit.
  4. Spark commits the batch to its checkpoint. A crash before this makes Spark repeat the batch: step 2 skips it.
A writer that was thought dead is fenced by the shared transactional id (KIP-98, KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tenacity import retry, retry_if_exception, stop_after_delay, wait_exponential

from engine.errors import NewnormalError
from engine.operator.messages import Outgoing

LEDGER_TOPIC = "newnormal.ledger"
_TIMEOUT = 60.0
log = structlog.get_logger()


class TransactionalWriter:
    """Writes micro-batches of one job.

    Args:
        bootstrap: Kafka's address.
        job: Name that the transactional id and the ledger's group are made of.
        ledger: Topic that the batch numbers are committed for; it holds no messages.
        epoch: Identity of the checkpoint that the batches are numbered in: a new checkpoint counts from 0 again.
    """

    def __init__(self, bootstrap: str, job: str, ledger: str = LEDGER_TOPIC, epoch: str = "") -> None:
        self.job, self.slot = job, TopicPartition(ledger, 0)
        group = {"bootstrap.servers": bootstrap, "group.id": f"{job}.ledger.{epoch}", "enable.auto.commit": False}
        self.consumer = Consumer(group | {"log_level": 2})
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"{job}.writer",
                "linger.ms": 2,
                "message.max.bytes": 15_000_000,
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 1_048_576,
                "log_level": 2,
            }
        )
        try:
            self.producer.init_transactions(_TIMEOUT)
        except KafkaException as error:
            what = f"no transaction for {job}: {error.args[0].str()}"
            raise NewnormalError("KAFKA_UNREACHABLE", what, bootstrap, "a running broker", "the job stops") from error
        self.committed = self._read()

    @retry(
        retry=retry_if_exception(lambda error: isinstance(error, KafkaException) and _may_pass(error.args[0])),
        wait=wait_exponential(0.1, max=2),
        stop=stop_after_delay(_TIMEOUT),
        reraise=True,
    )
    def _read(self) -> int:
        (slot,) = self.consumer.committed([self.slot], timeout=_TIMEOUT)
        return slot.offset - 1 if slot.offset >= 0 else -1

    def write(self, batch_id: int, messages: Iterable[Outgoing]) -> bool:
        """Writes a batch unless it was written before; returns whether it was written now.

        Raises:
            KafkaException: The transaction failed and was aborted; the batch may be tried again by a new writer.
        """
        if batch_id <= self.committed:
            log.info("batch was written before the restart, skipped", job=self.job, batch=batch_id)
            return False
        self.producer.begin_transaction()
        try:
            for some in messages:
                self._produce(some)
            offsets = [TopicPartition(self.slot.topic, self.slot.partition, batch_id + 1)]
            self.producer.send_offsets_to_transaction(offsets, self.consumer.consumer_group_metadata(), _TIMEOUT)
            self.producer.commit_transaction(_TIMEOUT)
        except BaseException:
            self._abort()
            raise
        self.committed = batch_id
        return True

    def _produce(self, some: Outgoing) -> None:
        topic, partition, produce = some.topic, some.partition, self.producer.produce
        for key, value in zip(some.keys.to_pylist(), some.values.to_pylist(), strict=True):
            while True:
                try:
                    produce(topic, value, key or None, partition)
                    break
                except BufferError:
                    self.producer.poll(0.1)

    def _abort(self) -> None:
        try:
            self.producer.abort_transaction(_TIMEOUT)
        except KafkaException as error:
            log.warning("abort failed; the broker times the transaction out", job=self.job, error=str(error))

    def close(self) -> None:
        """Lets go of the connections."""
        self.consumer.close()


def _may_pass(error: KafkaError) -> bool:
    """Whether an error is of a coordinator that has just started or is about to be found."""
    passing = (
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
    )
    return bool(error.retriable() or error.code() in passing)
