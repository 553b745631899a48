"""Asks Kafka before a start whether the user may read and write what jobs need, instead of failing in a micro-batch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from engine.address import client_options
from engine.kafka.diagnosis import DiagnosingClient
from engine.spec.errors import NewnormalError

_SECONDS = 15.0


def check_topics(bootstrap: str, reads: Collection[str], writes: Collection[str]) -> None:
    """Makes sure that the user may read and write some topics; one that logs in nowhere is not asked about.

    Args:
        bootstrap: ``host:port`` of a broker.
        reads: Full names of the topics that are read.
        writes: Full names of the topics that are written.

    Raises:
        NewnormalError: ``KAFKA_NOT_ALLOWED``, which names all that is missing.
    """
    if client_options(bootstrap).get("security.protocol", "PLAINTEXT") == "PLAINTEXT":
        return
    client: Any = DiagnosingClient(bootstrap)
    needed = [(topic, AclOperation.READ) for topic in reads] + [(topic, AclOperation.WRITE) for topic in writes]
    names = sorted({topic for topic, _ in needed})
    futures = client.describe_topics(
        TopicCollection(names), include_authorized_operations=True, request_timeout=_SECONDS
    )
    allowed: dict[str, Collection[Any]] = {}
    for topic, future in futures.items():
        try:
            allowed[topic] = future.result(_SECONDS + 1).authorized_operations or ()
        except (KafkaException, TimeoutError):
            continue  # the job that needs such a topic reports it
    lacks = {operation: sorted(t for t, o in needed if o is operation and t in allowed and o not in allowed[t])
             for operation in (AclOperation.READ, AclOperation.WRITE)}  # fmt: skip
    missing = [f"{operation.name.title()} on {', '.join(topics)}" for operation, topics in lacks.items() if topics]
    if missing:
        what = f"Kafka does not allow this user: {'; '.join(missing)}"
        accepted = "these ACLs; `newnormal acls` lists all that are needed"
        raise NewnormalError("KAFKA_NOT_ALLOWED", what, bootstrap, accepted, "nothing was started")
