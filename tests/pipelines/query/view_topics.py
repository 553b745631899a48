"""What tests of the state view share: topics of their own, states, and a view in this process."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.columns.partitioning import crc32
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.query.view.answers import Answers
from pipelines.query.view.detector_topics import TOPICS
from pipelines.query.view.follower import Follower
from pipelines.query.view.part import Part

T0, STEP, PARTITIONS = 1_700_000_000_000, 10_000, 4


def with_topics(endpoints: Endpoints, folder: Path) -> Settings:
    """Settings with topics of the caller's own."""
    given = {"kafka.bootstrap": endpoints.bootstrap, "view.windows": 100}
    settings = load(namespace=f"view{uuid.uuid4().hex[:8]}.", state_dir=folder, **given)
    ensure_topics(endpoints.bootstrap, {settings.topic(n): topics.config(n) for n in TOPICS}, PARTITIONS, 1)
    return settings


def state(entity: str, metric: str, number: int = 0, kind: str = "normal", score: float = 1.0) -> dict[str, Any]:
    made = {"host.name": entity, "metric": metric, "window_start": T0 + number * STEP, "kind": kind}
    more = {"incident.state": "open"} if kind == "anomaly" else {}
    return made | {"@timestamp": T0 + (number + 1) * STEP, "record_score": score, "values": number} | more


def produce(settings: Settings, states: list[dict[str, Any]]) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "linger.ms": 20, "enable.idempotence": True})
    for each in states:
        key = orjson.dumps({"entity": each["host.name"], "metric": each["metric"]})
        partition = crc32(each["host.name"]) % PARTITIONS
        producer.produce(settings.topic(topics.STATE), orjson.dumps(each), key=key, partition=partition)
        producer.poll(0)
    producer.flush()


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.05)


class Own(Answers):
    """A view in this process: what it answers, and the follower that reads."""

    def __init__(self, settings: Settings, part: Part | None = None) -> None:
        self.follower = Follower(settings, part)
        super().__init__(self.follower.database, settings, self.follower.partitions, self.follower.part)

    def read_all(self) -> None:
        def there() -> bool:
            return self.follower.step(0.1) == 0 and self.age()["messages_behind"] == 0

        until(there)
