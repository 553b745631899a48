"""Before a start: does Kafka still have what a job must read next?"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.embedded.endpoints import Endpoints
from engine.kafka import retained
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


def test_a_start_is_refused_when_messages_are_gone_and_allowed_when_the_user_says_so(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    topic = f"retained{abs(hash(tmp_path)) % 10**9}"
    ensure_topics(endpoints.bootstrap, {topic: {}}, 2)
    producer = Producer({"bootstrap.servers": endpoints.bootstrap})
    for number in range(10):
        producer.produce(topic, str(number), partition=0)
    producer.flush(30)
    client = AdminClient({"bootstrap.servers": endpoints.bootstrap})
    for future in client.delete_records([TopicPartition(topic, 0, 6)]).values():
        future.result(30)

    def check(offset: int, policy: str) -> None:
        needed = {"extractor": {(topic, 0): offset, (topic, 1): 0}}
        retained.check(endpoints.bootstrap, tmp_path, needed, policy, "engine.on_missing_offsets")

    check(6, "fail")
    with pytest.raises(NewnormalError) as error:
        check(2, "fail")
    assert error.value.code == "OFFSETS_MISSING"
    assert f"Kafka has removed 4 messages of {topic} that extractor has not read" in str(error.value)
    assert 'engine.on_missing_offsets = "earliest"' in str(error.value)
    check(2, "earliest")
