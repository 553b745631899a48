"""Checks before a start that Kafka still has what jobs must read next, and says where each goes on.

Spark takes a partition that a checkpoint does not know for one whose first message has the offset 0, one that is gone
for lost, and fails with each micro-batch if it is not so. So topics that a job reads from now on, or no longer, are
settled before (`engine.spark.checkpoint_topics`), and what really is lost is said at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from confluent_kafka import KafkaException

from engine.kafka.admin import topic_ids
from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spec.errors import NewnormalError

ACCEPTED = (
    'engine.on_missing_offsets = "earliest", which leaves these messages out, or "archive", if the archive has them; '
    "or `newnormal replay` into another version; or a longer kafka.retention the next time"
)
"""What a user of `newnormal run` may do."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Standing:
    """Where a job stands.

    Attributes:
        offsets: The next offset of each partition that it has read; empty: it has no checkpoint.
        topics: The topics that it reads from now on.
        ids: The identity of each topic when it was read, as far as that is known.
        elsewhere: Whether it reads what Kafka has removed from somewhere else.
    """

    offsets: Offsets
    topics: Collection[str]
    ids: Mapping[str, str] = field(default_factory=dict)
    elsewhere: bool = False


@dataclass(frozen=True)
class Held:
    """What Kafka has of some topics: the first and the next offset of each partition, and the topics' identities."""

    first: Offsets
    end: Offsets
    ids: Mapping[str, str]

    @classmethod
    def by(cls, bootstrap: str, topics: Collection[str], ids: Mapping[str, str]) -> Held:
        """What a broker has now, of topics with these identities.

        Raises:
            NewnormalError: ``KAFKA_UNREACHABLE``.
        """
        try:
            kafka = KafkaOffsets(bootstrap, sorted(topics), timeout=15.0)
            return cls(kafka.starts(), kafka.written(), ids)
        except (KafkaException, TimeoutError) as error:
            what = f"no answer about the messages of topics: {error}"
            now = "nothing was started"
            raise NewnormalError("KAFKA_UNREACHABLE", what, bootstrap, "a running broker", now) from None


def check(
    bootstrap: str, checkpoints: Path, jobs: Mapping[str, Standing], policy: str, accepted: str
) -> tuple[dict[str, Offsets], Mapping[str, str]]:
    """Refuses to start jobs whose next messages Kafka has removed, or says what will be left out.

    Args:
        bootstrap: ``host:port`` of a broker.
        checkpoints: Directory of the jobs' checkpoints.
        jobs: Where each job stands; of those without a checkpoint nothing is needed.
        policy: ``"earliest"``: the jobs begin with the first message that is there; any other: the start is refused.
        accepted: What else the user may do.

    Returns:
        For each job with a checkpoint the next offset of each partition that its topics have; and the identities of
        all topics.

    Raises:
        NewnormalError: ``OFFSETS_MISSING``; ``KAFKA_UNREACHABLE``.
    """
    ids = topic_ids(bootstrap, {topic for standing in jobs.values() for topic in standing.topics})
    known, goes_on, gone = {job: each for job, each in jobs.items() if each.offsets}, dict[str, Offsets](), list[str]()
    if known:
        held = Held.by(bootstrap, {topic for standing in known.values() for topic in standing.topics}, ids)
        for job, standing in known.items():
            goes_on[job], missing = onward(job, standing, held)
            gone += missing
    if not gone:
        return goes_on, ids
    if policy != "earliest":
        raise NewnormalError("OFFSETS_MISSING", "; ".join(gone), str(checkpoints), accepted, "nothing was started")
    log.warning("messages that Kafka has removed are left out", policy=policy, reason="; ".join(gone))
    return goes_on, ids


def onward(job: str, standing: Standing, held: Held) -> tuple[dict[tuple[str, int], int], list[str]]:
    """Where a job goes on, and a sentence for each topic of which it must read messages that are gone.

    A topic that it has not read before begins with its first message, whatever came before that.

    >>> held = Held({("t", 0): 8, ("t", 1): 9, ("new", 0): 7}, {("t", 0): 12, ("t", 1): 9, ("new", 0): 9}, {})
    >>> onward("extractor", Standing({("t", 0): 5, ("t", 1): 9}, ["t", "new"]), held)[0]
    {('t', 0): 5, ('t', 1): 9, ('new', 0): 7}
    >>> onward("extractor", Standing({("t", 0): 5, ("t", 1): 9}, ["t", "new"]), held)[1]
    ['Kafka has removed 3 messages of t that extractor has not read']
    >>> onward("extractor", Standing({("t", 0): 70, ("t", 1): 9}, ["t"]), held)
    ({('t', 0): 8, ('t', 1): 9}, ['t was made anew, or has lost messages, since extractor has read it'])
    """
    goes_on, gone = dict[tuple[str, int], int](), list[str]()
    for topic in standing.topics:
        first = {place: offset for place, offset in held.first.items() if place[0] == topic}
        read = {place: offset for place, offset in standing.offsets.items() if place[0] == topic}
        goes_on |= first
        ids = {each[topic] for each in (held.ids, standing.ids) if topic in each}
        if any(read.values()) and (len(ids) > 1 or any(offset > held.end.get(at, -1) for at, offset in read.items())):
            gone.append(f"{topic} was made anew, or has lost messages, since {job} has read it")
        elif read:
            goes_on |= {place: offset for place, offset in read.items() if place in first}
            lost = sum(max(0, offset - read.get(place, 0)) for place, offset in first.items())
            if lost and not standing.elsewhere:
                gone.append(f"Kafka has removed {lost:,} messages of {topic} that {job} has not read")
    return goes_on, gone
