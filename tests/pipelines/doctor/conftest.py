"""A pipeline of one's own on the real servers, with its topics, for checks to look at."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from pipelines.contracts.settings import Settings, load
from pipelines.doctor.context import Context
from pipelines.runtime.program import CHAIN

Make = Callable[..., Context]


@pytest.fixture
def make(endpoints: Endpoints, tmp_path: Path) -> Iterator[Make]:
    """Makes contexts of one namespace of the test's own; the arguments are settings by dotted name."""
    namespace, made = f"d{uuid.uuid4().hex[:10]}.", []

    def make(clock: Callable[[], int] | None = None, processes: Any = (), **given: Any) -> Context:
        shared = {"namespace": namespace, "state_dir": tmp_path / "state", "kafka.partitions": 2}
        settings = endpoints.settings(load(**shared | given))
        context = Context(settings, processes, clock) if clock else Context(settings, processes)
        made.append(context)
        return context

    yield make
    for each in made:
        each.close()


@pytest.fixture
def context(make: Make) -> Context:
    """A pipeline whose topics exist."""
    context = make()
    CHAIN.prepare(context.settings)
    return context


def now() -> int:
    return round(time.time() * 1000)


def send(context: Context, name: str, *messages: tuple[int, bytes], at: int | None = None) -> None:
    """Sends messages, each to a partition of a topic that is named without the namespace.

    Args:
        context: Whose topic.
        name: The topic.
        messages: Partition and value.
        at: When they were sent, epoch milliseconds; ``None``: now.
    """
    producer = Producer({"bootstrap.servers": context.bootstrap})
    topic = context.settings.reads(name)
    for partition, value in messages:
        producer.produce(topic, value, partition=partition, timestamp=at or now())
    assert producer.flush(30) == 0


def sample(time: int, entity: str = "db-1") -> bytes:
    """A sample as an agent sends it."""
    tree = {"@timestamp": time, "host.name": entity, "metric": "cpu", "value": 1.0}
    return json.dumps(tree).encode()


def begun(settings: Settings, job: str, offsets: dict[str, dict[str, int]], identity: str = "x") -> Path:
    """The checkpoint of a job that has completed one micro-batch, as Spark leaves it; returns the file that says so."""
    folder = settings.folder("checkpoints") / job
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": identity}))
    (folder / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(offsets)}")
    done = folder / "commits" / "0"
    done.write_text("v1\n{}")
    return done
