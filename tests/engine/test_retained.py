"""Before a start: does Kafka still have what a job must read next, and where does it go on?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from deploy.embedded.endpoints import Endpoints
from engine.kafka import retained
from engine.kafka.admin import delete_topics, ensure_topics, topic_ids
from engine.kafka.offsets import Offsets
from engine.kafka.retained import Held, Standing, onward
from engine.spec.errors import NewnormalError

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


class Place:
    """Topics of a test's own with two partitions, of which the first holds ten messages; the first six are gone."""

    def __init__(self, bootstrap: str, checkpoints: Path) -> None:
        self.bootstrap, self.checkpoints = bootstrap, checkpoints
        self.client = AdminClient({"bootstrap.servers": bootstrap})

    def topic(self, messages: int = 10, removed: int = 6, name: str = "") -> str:
        topic = name or f"retained{time.time_ns()}"
        ensure_topics(self.bootstrap, {topic: {}}, 2)
        self.fill(topic, 0, messages)
        self.remove(topic, 0, removed)
        return topic

    def fill(self, topic: str, partition: int, messages: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in range(messages):
            producer.produce(topic, str(number), partition=partition)
        assert not producer.flush(30)

    def remove(self, topic: str, partition: int, before: int) -> None:
        client = AdminClient({"bootstrap.servers": self.bootstrap})  # which asks for the partitions that there are now
        for future in client.delete_records([TopicPartition(topic, partition, before)]).values():
            future.result(30)

    def goes_on(self, offsets: Offsets, *topics: str, policy: str = "fail", ids: Mapping[str, str] = {}) -> Offsets:
        jobs = {"extractor": Standing(offsets, topics, ids)}
        return retained.check(self.bootstrap, self.checkpoints, jobs, policy, retained.ACCEPTED)[0]["extractor"]

    def refused(self, offsets: Offsets, *topics: str, ids: Mapping[str, str] = {}) -> str:
        with pytest.raises(NewnormalError) as error:
            self.goes_on(offsets, *topics, ids=ids)
        assert error.value.code == "OFFSETS_MISSING"
        assert 'engine.on_missing_offsets = "earliest"' in str(error.value)
        return error.value.what


@pytest.fixture
def place(endpoints: Endpoints, tmp_path: Path) -> Place:
    return Place(endpoints.bootstrap, tmp_path)


def test_a_start_is_refused_when_messages_are_gone_and_allowed_when_the_user_says_so(place: Place) -> None:
    topic = place.topic()
    known = {(topic, 0): 6, (topic, 1): 0}
    assert place.goes_on(known, topic) == known
    missing = {(topic, 0): 2, (topic, 1): 0}
    assert place.refused(missing, topic) == f"Kafka has removed 4 messages of {topic} that extractor has not read"
    assert place.goes_on(missing, topic, policy="earliest") == missing, "Spark begins with what is there"


def test_a_topic_that_is_new_to_a_job_begins_with_the_first_message_that_kafka_has(place: Place) -> None:
    """Nothing that was removed before was ever promised to this job."""
    old, new = place.topic(removed=0), place.topic()
    assert place.goes_on({(old, 0): 3, (old, 1): 0}, old, new) == {
        (old, 0): 3, (old, 1): 0, (new, 0): 6, (new, 1): 0,
    }  # fmt: skip


def test_a_topic_that_is_no_longer_read_is_left_out(place: Place) -> None:
    one, other = place.topic(), place.topic()
    assert place.goes_on({(one, 0): 7, (one, 1): 0, (other, 0): 1, (other, 1): 0}, one) == {(one, 0): 7, (one, 1): 0}


def test_messages_of_an_added_partition_that_are_gone_are_missing(place: Place) -> None:
    """The job reads the topic: those of the new partition are its, from the first."""
    topic = place.topic(removed=0)
    for future in place.client.create_partitions([NewPartitions(topic, 3)]).values():
        future.result(30)
    known = {(topic, 0): 3, (topic, 1): 0}
    place.fill(topic, 2, 5)
    assert place.goes_on(known, topic) == {**known, (topic, 2): 0}
    place.remove(topic, 2, 4)
    assert place.refused(known, topic) == f"Kafka has removed 4 messages of {topic} that extractor has not read"
    assert place.goes_on(known, topic, policy="earliest") == {**known, (topic, 2): 4}


@pytest.mark.parametrize(("now", "anew"), [({"t": "b"}, True), ({"t": "a"}, False), ({}, False)])
def test_an_identity_that_kafka_does_not_say_is_no_other_one(now: dict[str, str], anew: bool) -> None:
    """As while a partition of the topic has no leader."""
    standing, held = Standing({("t", 0): 5}, ["t"], {"t": "a"}), Held({("t", 0): 0}, {("t", 0): 9}, now)
    goes_on, gone = onward("extractor", standing, held)
    assert (bool(gone), goes_on) == (anew, {("t", 0): 0 if anew else 5})


@pytest.mark.parametrize("messages", [3, 20], ids=["shorter", "longer"])
def test_a_topic_that_was_made_anew_is_not_gone_on_with_where_the_former_one_ended(place: Place, messages: int) -> None:
    """The boundary: one with fewer messages than were read shows it by its end, any other by its identity only."""
    topic = place.topic(removed=0)
    known, ids = {(topic, 0): 10, (topic, 1): 0}, topic_ids(place.bootstrap, [topic])
    delete_topics(place.bootstrap, [topic])
    deadline = time.monotonic() + 60
    while topic in place.client.list_topics(timeout=10).topics and time.monotonic() < deadline:
        time.sleep(0.1)
    place.topic(messages, removed=1, name=topic)
    said = f"{topic} was made anew, or has lost messages, since extractor has read it"
    assert place.refused(known, topic, ids=ids) == said
    assert place.goes_on(known, topic, policy="earliest", ids=ids) == {(topic, 0): 1, (topic, 1): 0}
    unread = {(topic, 0): 0, (topic, 1): 0}
    with pytest.raises(NewnormalError, match="removed 1 messages"):
        place.goes_on(unread, topic, ids=ids)
