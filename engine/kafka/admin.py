"""Creates missing Kafka topics, since brokers may not create topics by themselves, and deletes topics and groups."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from engine.kafka.diagnosis import DiagnosingClient, forbidden
from engine.spec.errors import NewnormalError

_SLICE_SECONDS = 2.0
"""Longest single wait, seconds; Ctrl-C is noticed after it."""


def ensure_topics(
    bootstrap: str,
    topics: Mapping[str, Mapping[str, Any]],
    partitions: int = 4,
    replication: int = 1,
    timeout: float = 30.0,
) -> list[str]:
    """Creates the missing ones of ``topics``; existing topics are left as they are.

    Safe to call again and from several processes at once. Returns when all of them can be written to.

    Args:
        bootstrap: ``host:port`` of a broker.
        topics: The full name of each topic and its configuration, e.g. ``{"retention.ms": "86400000"}``.
        partitions: Partitions of a new topic.
        replication: Replicas of a new topic.
        timeout: Seconds to wait for the cluster.

    Returns:
        The names of the topics that this call created, sorted.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE`` or ``TOPIC_NOT_CREATED``.
    """
    client = DiagnosingClient(bootstrap)
    deadline = time.monotonic() + timeout
    missing = topics.keys() - _present(client, bootstrap, timeout)
    news = [
        NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(topics[name]))
        for name in sorted(missing)
    ]
    created = []
    for name, future in client.create_topics(news, request_timeout=timeout).items() if news else ():
        try:
            future.result(timeout)
            created.append(name)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if refused := forbidden(reason, f"to create the topic {name}", bootstrap, "nothing was started"):
                raise refused from None
            if reason.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise NewnormalError("TOPIC_NOT_CREATED", f"{name}: {reason.str()}", bootstrap) from None
        except TimeoutError:
            what = f"{name}: no answer within {timeout:g} s"
            raise NewnormalError("TOPIC_NOT_CREATED", what, bootstrap) from None
    while lacking := topics.keys() - _present(client, bootstrap, timeout) or _unready(client, bootstrap, missing):
        if time.monotonic() > deadline:
            raise NewnormalError("TOPIC_NOT_CREATED", f"{', '.join(sorted(lacking))} did not appear", bootstrap)
        time.sleep(0.05)
    return created


def change_configs(
    bootstrap: str, configs: Mapping[str, Mapping[str, str]], timeout: float = 30.0
) -> dict[str, dict[str, tuple[str, str]]]:
    """Changes the configuration of existing topics where it differs; topics that do not exist are left out.

    Args:
        bootstrap: ``host:port`` of a broker.
        configs: The full name of each topic, and the values that it is to have.
        timeout: Seconds to wait for the cluster.

    Returns:
        For each changed topic: name, old and new value of each changed entry.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``, ``TOPIC_NOT_CHANGED``.
    """
    client = DiagnosingClient(bootstrap)
    asked = [_resource(name) for name in sorted(configs.keys() & _present(client, bootstrap, timeout)) if configs[name]]
    if not asked:
        return {}
    try:
        described = client.describe_configs(asked).items()
        current = {resource.name: future.result(timeout) for resource, future in described}
        changes = {
            name: {key: (entries[key].value, new) for key, new in configs[name].items() if entries[key].value != new}
            for name, entries in current.items()
        }
        changes = {name: changed for name, changed in changes.items() if changed}
        altered = [
            _resource(name, {key: new for key, (_, new) in changed.items()}) for name, changed in changes.items()
        ]
        for future in client.incremental_alter_configs(altered).values() if altered else ():
            future.result(timeout)
    except (KafkaException, TimeoutError) as error:
        accepted = "a broker that lets this client change topics"
        raise NewnormalError("TOPIC_NOT_CHANGED", str(error), bootstrap, accepted, "nothing was started") from None
    return changes


def _resource(topic: str, values: Mapping[str, str] | None = None) -> ConfigResource:
    """The configuration of a topic, as in requests that read or set it."""
    entries = [
        ConfigEntry(key, new, incremental_operation=AlterConfigOpType.SET) for key, new in (values or {}).items()
    ]
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)


def delete_topics(bootstrap: str, names: Collection[str], timeout: float = 30.0) -> None:
    """Deletes those of some topics that exist.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``.
        KafkaException: If the broker refuses.
    """
    client = DiagnosingClient(bootstrap)
    there = [name for name in names if name in _listed(client, bootstrap, timeout)]
    for future in client.delete_topics(there, operation_timeout=timeout).values() if there else ():
        try:
            future.result(timeout)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


def delete_groups(bootstrap: str, prefix: str, timeout: float = 30.0) -> None:
    """Deletes the consumer groups whose names begin with some text, and with them the offsets that they keep.

    Raises:
        KafkaException: If the broker refuses, for example as a group has members.
    """
    client = DiagnosingClient(bootstrap)
    listed = client.list_consumer_groups(request_timeout=timeout).result(timeout).valid
    groups = [group.group_id for group in listed if group.group_id.startswith(prefix)]
    for future in client.delete_consumer_groups(groups, request_timeout=timeout).values() if groups else ():
        future.result(timeout)


def topic_ids(bootstrap: str, topics: Collection[str], timeout: float = 30.0) -> dict[str, str]:
    """The identity that the cluster gave each existing topic of ``topics``; one that is made anew has another.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``.
    """
    client = DiagnosingClient(bootstrap)
    present = sorted(_present(client, bootstrap, timeout) & set(topics))
    try:
        asked = client.describe_topics(TopicCollection(present)) if present else {}
        return {name: str(future.result(timeout).topic_id) for name, future in asked.items()}
    except (KafkaException, TimeoutError) as error:
        raise NewnormalError("KAFKA_UNREACHABLE", str(error), bootstrap, "a running broker") from None


def partition_counts(bootstrap: str, topics: Collection[str], timeout: float = 30.0) -> dict[str, int]:
    """The number of partitions of each existing topic of ``topics``.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``.
    """
    listed = _listed(DiagnosingClient(bootstrap), bootstrap, timeout)
    return {name: len(listed[name].partitions) for name in topics if name in listed and listed[name].error is None}


def _present(client: DiagnosingClient, bootstrap: str, timeout: float) -> set[str]:
    listed = _listed(client, bootstrap, timeout)
    return {name for name, topic in listed.items() if topic.error is None and _led(topic)}


def _listed(client: DiagnosingClient, bootstrap: str, timeout: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout
    while True:
        try:
            return dict(client.list_topics(timeout=min(timeout, _SLICE_SECONDS)).topics)
        except KafkaException as error:
            if refused := client.refusal("nothing was written"):
                raise refused from None
            if time.monotonic() > deadline:
                raise NewnormalError(
                    "KAFKA_UNREACHABLE",
                    f"no answer from {bootstrap} within {timeout:g} s: {error.args[0].str()}",
                    "kafka.bootstrap",
                    "host:port of a running broker; `newnormal services up` starts one on this machine",
                    "nothing was written",
                ) from None


def _unready(client: DiagnosingClient, bootstrap: str, topics: Collection[str]) -> set[str]:
    """New topics with a partition whose leader refuses requests, as it does not know yet that it leads."""
    counts, newest = partition_counts(bootstrap, topics) if topics else {}, OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(name, p): newest for name, count in counts.items() for p in range(count)}
    refused = set()
    for place, future in client.list_offsets(asked, request_timeout=_SLICE_SECONDS).items() if asked else ():
        try:
            future.result(_SLICE_SECONDS)
        except (KafkaException, TimeoutError):
            refused.add(place.topic)
    return refused


def _led(topic: Any) -> bool:
    return bool(topic.partitions) and all(part.leader >= 0 for part in topic.partitions.values())
