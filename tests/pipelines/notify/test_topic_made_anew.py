"""A topic of incidents that was deleted and made anew, as by `newnormal retire v2` and a replay of that name."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import delete_topics, ensure_topics, topic_ids
from pipelines.contracts import topics
from pipelines.contracts.records import Incident
from pipelines.contracts.settings import Settings, load
from pipelines.notify.memory import Memory
from pipelines.notify.news import News, news
from pipelines.notify.reader import Reader
from tests.pipelines.notify.receivers import incident, until

pytestmark = [pytest.mark.servers, pytest.mark.timeout(60)]


@pytest.fixture
def settings(endpoints: Endpoints, tmp_path: Path) -> Settings:
    return load(
        namespace=f"anew{uuid.uuid4().hex[:8]}.", state_dir=tmp_path, **{"kafka.bootstrap": endpoints.bootstrap}
    )


def live(settings: Settings, found: Iterable[Incident]) -> None:
    """A topic of incidents, made with these."""
    bootstrap, topic = settings.kafka.bootstrap or "", settings.reads(topics.INCIDENTS)
    if before := topic_ids(bootstrap, [topic]):
        delete_topics(bootstrap, [topic])
        until(lambda: not topic_ids(bootstrap, [topic]))
    ensure_topics(bootstrap, {topic: topics.config(topics.INCIDENTS)}, 1)
    until(lambda: topic_ids(bootstrap, [topic]) not in ({}, before))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for each in found:
        producer.produce(topic, each.to_json(), key=each.id.encode())
    assert producer.flush(30) == 0


@contextmanager
def reading(settings: Settings, memory: Memory) -> Iterator[Reader]:
    """A reader that has read the topic to its end."""
    reader = Reader(settings, memory)
    try:
        until(lambda: bool(reader.step(0.1) or reader.current))
        until(lambda: not reader.step(0.2) and reader.current)
        yield reader
    finally:
        reader.close()


def due(memory: Memory, topic: str) -> list[str]:
    """What the channel is told now, as its teller does: of incidents that are gone, their end."""
    said = memory.last_reports("hook")
    there, elsewhere = memory.incidents(topic)
    known = [
        (each.incident, memory.routing.duty("hook", each.incident, each.taken, 0)) for each in (*there, *elsewhere)
    ]
    gone = {each.incident.id for each in elsewhere}
    now = [(it.model_copy(update={"status": "resolved"}) if it.id in gone else it, duty) for it, duty in known]
    told = [(it, duty) for it, duty in now if it.id not in gone or it.id in said]
    found: list[News] = [each for it, duty in told if (each := news(it, said.get(it.id), duty))]
    memory.say("hook", {each.incident.id: each.as_report() for each in found}, 1, 9)
    return sorted(f"{each.incident.id} {each.state}" for each in found)


def test_all_incidents_of_a_topic_made_anew_are_told_though_it_is_longer_than_what_was_read(
    settings: Settings, tmp_path: Path
) -> None:
    topic = settings.reads(topics.INCIDENTS)
    memory = Memory(tmp_path / "memory", ["hook"])
    live(
        settings,
        [incident("lasts"), incident("aaaa"), incident("gone"), *(incident("aaaa", revision=r) for r in (1, 2))],
    )
    with reading(settings, memory) as reader:
        assert due(memory, topic) == ["aaaa opened", "gone opened", "lasts opened"]
        assert not reader.replaced()
        again = [incident("aaaa"), incident("bbbb"), incident("aaaa", "resolved", revision=1), incident("lasts")]
        live(settings, [*again, *(incident(name) for name in ("cccc", "dddd", "eeee", "ffff"))])
        assert reader.replaced(), "a process that runs meanwhile sees it"
    memory.close()
    memory = Memory(tmp_path / "memory", ["hook"])
    told = [f"{name} opened" for name in ("bbbb", "cccc", "dddd", "eeee", "ffff")]
    with reading(settings, memory):
        assert due(memory, topic) == ["aaaa resolved", *told, "gone resolved"]
    with reading(settings, memory):
        assert due(memory, topic) == [], "nothing is told twice"
    memory.close()
