"""Heartbeats on a real Kafka are rare while nothing else comes, or follow the ends of windows."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from itertools import pairwise

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from deploy.embedded.endpoints import Endpoints
from engine.kafka.heartbeat_sender import Beat, HeartbeatSender
from engine.kafka.offsets import KafkaOffsets

pytestmark = pytest.mark.servers
EVERY, QUIET, RARE = 0.2, 2.0, 5.0


class Heard:
    """When the heartbeats of a partition came, epoch milliseconds."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self._came = threading.Condition()

    def take(self, beat: Beat) -> None:
        with self._came:
            self.times.append(beat.time)
            self._came.notify()

    def gaps(self, number: int, since: int = 0) -> list[int]:
        """The first milliseconds between heartbeats from one on, as soon as there are so many."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.times) > since + number, 60), self.times
            return [after - before for before, after in pairwise(self.times[since : since + number + 1])]

    def rare(self) -> bool:
        """Whether the two latest are as far apart as if nothing came; waits for that."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.gaps(1, max(len(self.times) - 2, 0))[0] >= 1000 * RARE:
                return True
            self.gaps(1, len(self.times) - 1)
        return False


def test_heartbeats_are_rare_where_nothing_comes_and_often_again_after_a_message(endpoints: Endpoints) -> None:
    beaten, other = (f"beats{uuid.uuid4().hex[:8]}" for _ in range(2))
    admin = AdminClient({"bootstrap.servers": endpoints.bootstrap})
    for created in admin.create_topics([NewTopic(beaten, 1, 1), NewTopic(other, 1, 1)]).values():
        created.result(30)
    heard, producer = Heard(), Producer({"bootstrap.servers": endpoints.bootstrap})
    ends = KafkaOffsets(endpoints.bootstrap, [beaten, other]).ends
    with HeartbeatSender(endpoints.bootstrap, [beaten], EVERY, heard.take, ends, QUIET, RARE):
        assert max(heard.gaps(3)) < 1000 * RARE, "nobody knows yet that it is quiet"
        for topic in (beaten, other):
            assert heard.rare(), heard.times
            producer.produce(topic, b"a record")
            assert producer.flush(30) == 0
            assert max(heard.gaps(3, len(heard.times))) < 1000 * RARE, topic


def test_heartbeats_are_often_again_after_a_message_to_a_topic_that_was_made_anew(endpoints: Endpoints) -> None:
    """The offsets of the new topic are lower than those that were known."""
    beaten, other = (f"beats{uuid.uuid4().hex[:8]}" for _ in range(2))
    admin = AdminClient({"bootstrap.servers": endpoints.bootstrap})
    for created in admin.create_topics([NewTopic(beaten, 1, 1)]).values():
        created.result(30)
    heard, known = Heard(), {(other, 0): 1_000}
    with HeartbeatSender(endpoints.bootstrap, [beaten], EVERY, heard.take, lambda: dict(known), QUIET, RARE):
        assert heard.rare(), heard.times
        known[other, 0] = 1
        assert max(heard.gaps(3, len(heard.times))) < 1000 * RARE
        assert heard.rare(), heard.times
        known[other, 0] = 2
        assert max(heard.gaps(3, len(heard.times))) < 1000 * RARE


def test_one_heartbeat_follows_each_instant_of_a_grid_and_each_message_to_its_topic(endpoints: Endpoints) -> None:
    """A job of operators' messages has one micro-batch a window, and yet answers soon.

    The topic that gets the heartbeats holds nothing else at first, while another that counts is written all the time.
    """
    beaten, grid = f"beats{uuid.uuid4().hex[:8]}", 3_000
    admin = AdminClient({"bootstrap.servers": endpoints.bootstrap})
    for created in admin.create_topics([NewTopic(beaten, 1, 1)]).values():
        created.result(30)
    heard, producer = Heard(), Producer({"bootstrap.servers": endpoints.bootstrap})
    offsets, busy = KafkaOffsets(endpoints.bootstrap, [beaten]), itertools.count()

    def ends() -> dict[tuple[str, int], int]:
        return {**offsets.ends(), ("busy", 0): next(busy)}

    with HeartbeatSender(endpoints.bootstrap, [beaten], EVERY, heard.take, ends, QUIET, RARE, grid):
        heard.gaps(5)
        followed = [time // grid for time in heard.times[1:]]
        assert followed == list(range(followed[0], followed[0] + len(followed))), heard.times
        before = len(heard.times)
        producer.produce(beaten, b"a record")
        assert producer.flush(30) == 0
        sent = int(time.time() * 1000)
        heard.gaps(2, before - 1)
        answered = [at for at in heard.times[before:] if at < sent + 1_500]
        assert answered, (sent, heard.times)
