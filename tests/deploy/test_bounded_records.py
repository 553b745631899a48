"""Kafka with a bound on what a compressed batch becomes: a broker of ours refuses more than that."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.spec.too_large import MOST_IN_RECORD
from pipelines.contracts import topics


def sent(bootstrap: str, topic: str, values: list[bytes], codec: str) -> list[str]:
    """Sends values in one batch; returns what the broker says of each, empty for good."""
    options = {"compression.type": codec, "message.max.bytes": 1_000_000_000, "batch.size": 1_000_000_000}
    told = list[str]()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2_000, **options})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda e, _: told.append(e.name() if e else ""))
    assert not producer.flush(60)
    return told


@pytest.mark.servers
@pytest.mark.parametrize("codec", ["zstd", "gzip", "lz4", "snappy"])
def test_a_broker_of_ours_refuses_what_becomes_too_large_and_takes_what_comes_next(
    endpoints: Endpoints, codec: str
) -> None:
    topic = f"t{uuid.uuid4().hex[:8]}.{topics.RAW_AGENTS}"
    ensure_topics(endpoints.bootstrap, {topic: topics.config(topics.RAW_AGENTS)}, 1)
    assert sent(endpoints.bootstrap, topic, [b"x" * (MOST_IN_RECORD + 1)], codec) == ["MSG_SIZE_TOO_LARGE"]
    legal = b"y" * (MOST_IN_RECORD - 100)
    assert sent(endpoints.bootstrap, topic, [legal], codec) == [""]
