"""The mean size of messages is estimated from a few of them, and short topics are not waited for."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.kafka.message_size import mean_sizes

pytestmark = pytest.mark.servers


def test_the_mean_is_that_of_the_middle_and_an_empty_or_absent_topic_is_left_out(endpoints: Endpoints) -> None:
    """Of ten messages of each size, the first half is not looked at."""
    names = [f"sizes-{time.time_ns()}-{each}" for each in range(4)]
    ensure_topics(endpoints.bootstrap, {name: {} for name in names}, partitions=2)
    producer = Producer({"bootstrap.servers": endpoints.bootstrap})
    for name, (early, late) in zip(names, [(1, 1000), (50, 10), (7, 7)], strict=False):
        for size in (early, late):
            for _ in range(10):
                producer.produce(name, b"x" * size, partition=0)
    producer.flush(30)
    began = time.monotonic()
    sizes = mean_sizes(endpoints.bootstrap, [*names, f"{names[0]}-absent"])
    assert sizes == {names[0]: 1000, names[1]: 10, names[2]: 7}
    assert time.monotonic() - began < 6  # with a wait of three seconds for each short topic it were nine
    assert mean_sizes(endpoints.bootstrap, [f"{names[0]}-absent"]) == {}
