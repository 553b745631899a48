"""Heartbeats on a real Kafka while partitions are added to a topic."""

from __future__ import annotations

import threading
import uuid

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from engine.kafka.heartbeat_sender import Beat, HeartbeatSender
from tests.conftest import Endpoints

pytestmark = pytest.mark.servers


def test_a_partition_that_is_added_while_a_job_runs_gets_heartbeats(endpoints: Endpoints) -> None:
    admin, topic = AdminClient({"bootstrap.servers": endpoints.bootstrap}), f"beats{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    seen: set[int] = set()
    first, added = threading.Event(), threading.Event()

    def told(beat: Beat) -> None:
        seen.add(beat.partition)
        first.set()
        if beat.partition == 2:
            added.set()

    with HeartbeatSender(endpoints.bootstrap, [topic], 0.2, told):
        assert first.wait(60)
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
        assert added.wait(60), seen
