"""A run that ends with its input reads all of it."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.runtime.bounded import BoundedRun
from pipelines.runtime.driver import Driver

pytestmark = pytest.mark.servers


def test_a_transaction_that_the_broker_has_not_marked_yet_belongs_to_the_input(
    endpoints: Endpoints, settings: Settings
) -> None:
    """A commit returns before its markers are written: the job before has ended, and the last messages look open."""
    found = endpoints.settings(settings.model_copy(update={"namespace": f"bounded-{time.time_ns()}."}))
    topic = found.topic(topics.NOVELTIES)
    ensure_topics(endpoints.bootstrap, {topic: {}}, 1)
    before = Producer({"bootstrap.servers": endpoints.bootstrap, "transactional.id": topic, "log_level": 0})
    before.init_transactions(30)
    before.begin_transaction()
    before.produce(topic, b"{}", partition=0)
    before.flush(30)
    driver = Driver(found, ["sink"])
    run = BoundedRun(driver)

    read = driver.runs["sink"]
    read.read = {topic: {"0": 0}}
    assert not run.done()
    before.commit_transaction(30)
    read.read = {topic: {"0": 1}}
    assert run.done()
