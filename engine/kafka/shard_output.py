"""Output that each shard writes where it is computed: who may write, and which micro-batches are written already.

Each shard has a transactional id and a ledger of its own (`engine.kafka.exactly_once`). A micro-batch that is repeated
is skipped by the shards that have written it, and written by the others.

Spark repeats tasks, also those of a driver that was replaced. So drivers are numbered by generations. A driver that
begins does, in this order:
  1. Commit a generation of its own, above that of any earlier driver: the time, as Kafka forgets a generation after a
     week without a new driver.
  2. Begin transactions as each shard that has ever written, and as the driver: this aborts what an earlier driver or
     its tasks have open. Only then is it read what they have written, each ledger by the writer that has fenced it.
A task that begins transactions after step 2 reads the new generation, and ends if its own is another one: a driver
commits its generation before its tasks begin, so whoever finds another has been replaced. One that began before step 1
is fenced by step 2, begins anew, and reads the new generation too.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from engine.kafka.continuation import Ledgers
from engine.kafka.exactly_once import GENERATION, Shard, TransactionalWriter, fenced
from engine.runtime.messages import Outgoing
from engine.runtime.shard import STATS

ASSIGNMENT = "newnormal.assignment"
"""Name of the property by which a driver gives its tasks the `Assignment` of their micro-batch."""
_kept: dict[tuple[str, int], tuple[tuple[str, int], TransactionalWriter]] = {}
"""In a Python worker: the latest writer of each job and shard, with the checkpoint and the generation it is for."""


@dataclass(frozen=True)
class Place:
    """Where a job writes.

    Args:
        bootstrap: ``host:port`` of a broker; an `engine.address.Address` if the broker wants a login.
        job: Name of the job, with its owner.
        ledger: Topic of the ledger.
    """

    bootstrap: str
    job: str
    ledger: str

    def writer(
        self, epoch: str, stop: threading.Event | None = None, shard: Shard | None = None
    ) -> TransactionalWriter:
        """A writer, which connects with its first micro-batch."""
        return TransactionalWriter(self.bootstrap, self.job, self.ledger, epoch, stop, shard)


@dataclass(frozen=True)
class Assignment:
    """What the driver passes to the tasks of one micro-batch.

    Args:
        batch: Number of the micro-batch.
        checkpoint: Identity of the checkpoint that numbers the micro-batches.
        generation: Generation of the driver.
        floor: Number of the last micro-batch that the driver itself wrote for all shards; -1 without any.
    """

    batch: int
    checkpoint: str
    generation: int
    floor: int

    def text(self) -> str:
        """The assignment as JSON.

        >>> Assignment.of(Assignment(3, "c", 1, -1).text())
        Assignment(batch=3, checkpoint='c', generation=1, floor=-1)
        """
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Assignment:
        """Inverse of `text`."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Claim:
    """A driver's right to write, until another driver claims it.

    Args:
        checkpoint: Identity of the checkpoint.
        generation: Generation of the driver; -1 if no shard has ever written by itself.
        floor: Number of the last micro-batch that a driver wrote for all shards; -1 without any.
        shards: Number of the last micro-batch that each shard wrote by itself.
    """

    checkpoint: str
    generation: int
    floor: int
    shards: Mapping[int, int]

    def assignment(self, batch: int) -> Assignment:
        """What the driver passes to the tasks of a micro-batch."""
        return Assignment(batch, self.checkpoint, self.generation, self.floor)

    def missing(self, batch: int, messages: Iterable[Outgoing]) -> Iterator[Outgoing]:
        """The messages of a micro-batch that shards have not written by themselves before the driver began to write.

        Args:
            batch: Number of the micro-batch.
            messages: The messages of all shards, one shard after the other, each ending with its `STATS`.
        """
        of_shard: list[Outgoing] = []
        for outgoing in messages:
            if outgoing.topic != STATS:
                of_shard.append(outgoing)
                continue
            if self.shards.get(outgoing.partition, -1) < batch:
                yield from of_shard
            of_shard = []


def claim(place: Place, checkpoint: str, shards: int, stop: threading.Event) -> Claim:
    """Makes this driver the one whose tasks may write.

    Args:
        place: Where the job writes.
        checkpoint: Identity of its checkpoint.
        shards: Number of shards that will write by themselves; 0 if the driver writes.
        stop: Event that ends all waiting for Kafka.

    Raises:
        NewnormalError: ``JOB_FENCED`` if another driver claims it at the same time; ``KAFKA_UNREACHABLE``.
    """
    entries = Ledgers(place.bootstrap, place.ledger).entries(place.job)
    every = {shard for _, shard in entries if shard is not None} | set(range(shards))
    if not every:
        return Claim(checkpoint, -1, entries.get((checkpoint, None), -1), {})
    generation = max(entries.get((GENERATION, None), -1) + 1, time.time_ns() // 1_000_000)
    first = place.writer(GENERATION, stop)
    mine = first.write(generation, [])
    first.close()
    if not mine:
        raise fenced(f"another driver begins to run {place.job}", place.bootstrap)

    def fence(shard: int | None) -> int:
        writer = place.writer(checkpoint, stop, None if shard is None else Shard(shard, generation))
        try:
            return writer.begin()
        finally:
            writer.close()

    with ThreadPoolExecutor(min(16, len(every))) as pool:
        written = dict(zip(every, pool.map(fence, every), strict=True))
    return Claim(checkpoint, generation, fence(None), {shard: batch for shard, batch in written.items() if batch >= 0})


def write(place: Place, assignment: Assignment, shard: int, messages: Iterable[Outgoing]) -> bool:
    """Writes the output of a shard in the process that computed it; returns whether this call wrote it.

    The writer is kept for the shard's next micro-batch. If another process writes that, it fences this writer, which
    begins anew when the shard comes back to this process.

    Raises:
        NewnormalError: ``JOB_FENCED`` if another driver runs the job now; ``KAFKA_NOT_ALLOWED``.
    """
    key, current = (place.job, shard), (assignment.checkpoint, assignment.generation)
    kept_for, writer = _kept.get(key, (None, None))
    if writer is None or kept_for != current:
        if writer is not None:
            writer.close()
        writer = place.writer(assignment.checkpoint, shard=Shard(shard, assignment.generation, assignment.floor))
        _kept[key] = current, writer
    return writer.write(assignment.batch, messages)
