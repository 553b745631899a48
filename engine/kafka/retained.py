"""Checks before a start that Kafka still has what jobs must read next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import structlog
from confluent_kafka import KafkaException

from engine.kafka.offsets import KafkaOffsets, Offsets
from engine.spec.errors import NewnormalError

log = structlog.get_logger()


def check(bootstrap: str, checkpoints: Path, needed: Mapping[str, Offsets], policy: str, setting: str) -> None:
    """Refuses to start jobs whose next messages Kafka has removed, or says what will be left out.

    Args:
        bootstrap: ``host:port`` of a broker.
        checkpoints: Directory of the jobs' checkpoints.
        needed: For each job with a checkpoint: the next offset of each partition that it reads.
        policy: ``"earliest"``: the jobs begin with the first message that is there; any other: the start is refused.
        setting: Name of the setting with the policy.

    Raises:
        NewnormalError: ``OFFSETS_MISSING``; ``KAFKA_UNREACHABLE``.
    """
    topics = sorted({topic for offsets in needed.values() for topic, _ in offsets})
    if not topics:
        return
    try:
        first = KafkaOffsets(bootstrap, topics, timeout=15.0).starts()
    except (KafkaException, TimeoutError) as error:
        what = f"no answer about the first messages of topics: {error}"
        raise NewnormalError("KAFKA_UNREACHABLE", what, bootstrap, "a running broker", "nothing was started") from None
    gone = [text for job, offsets in needed.items() for text in missing(job, offsets, first)]
    if not gone:
        return
    if policy != "earliest":
        accepted = (
            f'{setting} = "earliest", which leaves these messages out, or "archive", if the archive has them; or '
            "`newnormal replay` into another version; or a longer kafka.retention the next time"
        )
        raise NewnormalError("OFFSETS_MISSING", "; ".join(gone), str(checkpoints), accepted, "nothing was started")
    log.warning("messages that Kafka has removed are left out", policy=policy, reason="; ".join(gone))


def missing(job: str, offsets: Offsets, first: Offsets) -> list[str]:
    """A sentence for each topic of which a job must read messages that are gone.

    >>> missing("extractor", {("t", 0): 5, ("t", 1): 9}, {("t", 0): 8, ("t", 1): 9})
    ['Kafka has removed 3 messages of t that extractor has not read']
    """
    gone: dict[str, int] = {}
    for (topic, partition), offset in offsets.items():
        count = max(0, first.get((topic, partition), 0) - offset)
        if count:
            gone[topic] = gone.get(topic, 0) + count
    return [f"Kafka has removed {count:,} messages of {topic} that {job} has not read" for topic, count in gone.items()]
