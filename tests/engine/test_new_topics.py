"""Topics that were just made take requests at once."""

from __future__ import annotations

import time

import pytest

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.kafka.offsets import KafkaOffsets

pytestmark = pytest.mark.servers

PARTITIONS = 4


def test_new_topics_have_leaders_that_know_that_they_lead(endpoints: Endpoints) -> None:
    """A broker names the leader of a new partition before the leader itself takes requests."""
    for turn in range(5):
        names = [f"new-{time.time_ns()}-{turn}-{number}" for number in range(8)]
        assert ensure_topics(endpoints.bootstrap, {name: {} for name in names}, PARTITIONS) == names
        ends = KafkaOffsets(endpoints.bootstrap, names).ends()
        assert ends == {(name, partition): 0 for name in names for partition in range(PARTITIONS)}
