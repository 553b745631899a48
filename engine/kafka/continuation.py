"""Checks before a start that the checkpoint of a job and its output belong together.

A checkpoint numbers the micro-batches of its job, and the ledger in Kafka says which of them are in the output
(see `engine.kafka.exactly_once`). A job whose checkpoint is gone would read its input again and write all output a
second time. A job whose checkpoint is older than its output would skip micro-batches whose numbers are in the ledger,
although they hold other records now. Neither is started unless the user asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from engine.kafka.diagnosis import DiagnosingClient, forbidden
from engine.kafka.exactly_once import GENERATION, ledger_group
from engine.spec.errors import NewnormalError

_ANSWER_SECONDS = 15.0
_LOADING_SECONDS = 60.0
T = TypeVar("T")
log = structlog.get_logger()


def check(
    bootstrap: str,
    owner: str,
    ledger: str,
    checkpoints: Path,
    outputs: Mapping[str, Collection[str]],
    write_again: bool = False,
) -> None:
    """Refuses to start jobs that have output which their checkpoint does not know of.

    Args:
        bootstrap: ``host:port`` of a broker.
        owner: Put before the names of jobs in the names of the ledgers' groups.
        ledger: The ledger's topic.
        checkpoints: Directory of the jobs' checkpoints.
        outputs: The jobs to start, and the topics to which each writes its results.
        write_again: True if the user wants that output a second time: nothing is refused, and the ledger is set back to
            the end of an older checkpoint.

    Raises:
        NewnormalError: ``CHECKPOINT_MISSING``, ``CHECKPOINT_BEHIND``, ``KAFKA_UNREACHABLE``.
    """
    kafka = Ledgers(bootstrap, ledger)
    missing, behind = {}, {}
    for job, topics in outputs.items():
        written = kafka.written(owner + job)
        mine, last = identity(checkpoints / job), last_batch(checkpoints / job)
        if mine is None and written and kafka.any_records(topics):
            missing[job] = f"{job} has written to {', '.join(topics)} from checkpoint {' and '.join(sorted(written))}"
        elif mine is not None and written.get(mine, -1) > last:
            behind[job] = f"{job} has written micro-batch {written[mine]}, its checkpoint ends with {last}"
            if write_again:
                kafka.set_back(owner + job, mine, last)
    if write_again:
        for reason in [*missing.values(), *behind.values()]:
            log.warning("output is written a second time, as asked for", reason=reason)
        return
    again = "newnormal run --write-again, which doubles that output; or another namespace, whose topics begin empty"
    if missing:
        what = "; ".join(missing.values()) + ", which is not there"
        accepted = f"that checkpoint put back; {again}"
        raise NewnormalError("CHECKPOINT_MISSING", what, str(checkpoints), accepted, "nothing was started")
    if behind:
        accepted = f"the newest checkpoint; {again}"
        raise NewnormalError(
            "CHECKPOINT_BEHIND", "; ".join(behind.values()), str(checkpoints), accepted, "nothing was started"
        )


def identity(checkpoint: Path) -> str | None:
    """The identity that Spark gave a checkpoint when it created it; ``None`` if there is no checkpoint."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except FileNotFoundError:
        return None


def last_batch(checkpoint: Path) -> int:
    """Number of the last micro-batch that a checkpoint has planned, whether completed or not; -1 without any."""
    try:
        return max((int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdigit()), default=-1)
    except FileNotFoundError:
        return -1


def _loading(error: BaseException) -> bool:
    """Whether a broker still loads its groups after its start, and cannot yet say what was committed."""
    codes = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR)
    return isinstance(error, KafkaException) and error.args[0].code() in codes


@retry(retry=retry_if_exception(_loading), stop=stop_after_delay(_LOADING_SECONDS), wait=wait_fixed(0.5), reraise=True)
def _answer(ask: Callable[[], T]) -> T:
    """The answer of a broker; the question is repeated while the broker loads its groups.

    Raises:
        KafkaException: If the broker refuses, or still loads its groups after `_LOADING_SECONDS`.
        TimeoutError: If it does not answer.
    """
    return ask()


def _groups(client: AdminClient) -> list[str]:
    """Names of all groups that have committed anything."""
    listed = client.list_consumer_groups(request_timeout=_ANSWER_SECONDS).result(_ANSWER_SECONDS + 1)
    if listed.errors:
        first = listed.errors[0]
        raise first if isinstance(first, KafkaException) else KafkaException(first)
    return [group.group_id for group in listed.valid]


class Ledgers:
    """Questions to a broker about ledgers and outputs."""

    def __init__(self, bootstrap: str, ledger: str) -> None:
        self.bootstrap, self.slot = bootstrap, TopicPartition(ledger, 0)
        self.client = DiagnosingClient(bootstrap)
        self.groups = self._asked(partial(_groups, self.client))

    def written(self, job: str) -> dict[str, int]:
        """The number of the last micro-batch in the output, for each checkpoint that has written."""
        written: dict[str, int] = {}
        for (checkpoint, _), batch in self.entries(job).items():
            if checkpoint != GENERATION:
                written[checkpoint] = max(batch, written.get(checkpoint, -1))
        return written

    def entries(self, job: str) -> dict[tuple[str, int | None], int]:
        """The number of the last written micro-batch, by checkpoint and shard; ``None``: the driver wrote all shards'.

        The generation of the driver (see `engine.kafka.shard_output`) is in the place of a checkpoint.
        """
        entries = {}
        for name, batch in self._committed(ledger_group(job)):
            checkpoint, _, shard = name.partition(".")
            entries[checkpoint, int(shard) if shard else None] = batch
        return entries

    def _committed(self, prefix: str) -> Iterator[tuple[str, int]]:
        for group in self.groups:
            if group.startswith(prefix):
                asked = [ConsumerGroupTopicPartitions(group, [self.slot])]
                (slot,) = self._of_group(partial(self.client.list_consumer_group_offsets, asked)).topic_partitions
                if slot.offset > 0:
                    yield group.removeprefix(prefix), slot.offset - 1

    def any_records(self, topics: Collection[str]) -> bool:
        """Whether any of the topics has messages."""
        existing = self.client.list_topics(timeout=_ANSWER_SECONDS).topics
        places = [TopicPartition(name, p) for name in topics if name in existing for p in existing[name].partitions]
        specs: Any = OffsetSpec
        first, end = (self._offsets(places, spec) for spec in (specs.earliest(), specs.latest()))
        return first != end

    def _offsets(self, places: list[TopicPartition], spec: Any) -> list[int]:
        futures = self.client.list_offsets(dict.fromkeys(places, spec), request_timeout=_ANSWER_SECONDS)
        return [self._asked(partial(futures[place].result, _ANSWER_SECONDS + 1)).offset for place in places]

    def set_back(self, job: str, checkpoint: str, last: int) -> None:
        """Sets the ledgers of a checkpoint back: ``last`` becomes the number of the last written micro-batch."""
        slot = TopicPartition(self.slot.topic, self.slot.partition, last + 1)
        for (of, shard), batch in self.entries(job).items():
            if of == checkpoint and batch > last:
                asked = [ConsumerGroupTopicPartitions(ledger_group(job, checkpoint, shard), [slot])]
                self._of_group(partial(self.client.alter_consumer_group_offsets, asked))

    def _of_group(self, request: Callable[..., Any]) -> Any:
        """The answer to a request about one group."""

        def ask() -> Any:
            (future,) = request(request_timeout=_ANSWER_SECONDS).values()
            return future.result(_ANSWER_SECONDS + 1)

        return self._asked(ask)

    def _asked(self, ask: Callable[[], T]) -> T:
        """The answer to a question; a `NewnormalError` if there is none."""
        try:
            return _answer(ask)
        except (KafkaException, TimeoutError) as error:
            what = f"no answer about what was written before: {error}"
            accepted, now = "a running broker", "nothing was started"
            if isinstance(error, KafkaException) and (
                refusal := forbidden(error.args[0], "to ask what was written before", self.bootstrap, now)
            ):
                raise refusal from None
            raise NewnormalError("KAFKA_UNREACHABLE", what, self.bootstrap, accepted, now) from None
