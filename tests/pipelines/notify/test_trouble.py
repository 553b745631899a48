"""What keeps the process from telling people: as long as there is something, the dead man's switch hears nothing."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.notify import running
from pipelines.notify.running import Notifier
from tests.pipelines.notify.receivers import HttpReceiver, http_receiver, incident, until

pytestmark = [pytest.mark.servers, pytest.mark.timeout(60)]


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


@pytest.fixture
def settings(endpoints: Endpoints, tmp_path: Path, receiver: HttpReceiver) -> Settings:
    channels = {"night": {"kind": "webhook", "url": receiver.url}}
    own = {"kafka.bootstrap": endpoints.bootstrap, "notify.channels": channels, "notify.port": 0}
    return load(namespace=f"trouble{uuid.uuid4().hex[:8]}.", state_dir=tmp_path, **own)


def test_there_is_trouble_until_incidents_are_read_and_when_no_channel_takes_messages_or_a_thread_has_ended(
    settings: Settings, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, stopped, ready = settings.reads(topics.INCIDENTS), threading.Event(), threading.Event()
    notifier = Notifier(settings, "v1")
    process = threading.Thread(target=notifier.run, args=(stopped, lambda _: ready.set()))
    process.start()
    try:
        assert notifier.trouble() == "incidents are not read yet", "there is no topic"
        ensure_topics(settings.kafka.bootstrap or "", {topic: topics.config(topics.INCIDENTS)}, 1)
        until(ready.is_set)
        until(lambda: notifier.trouble() == "")
        receiver.answers = lambda _: (500, {}, "out of order")
        producer = Producer({"bootstrap.servers": settings.kafka.bootstrap})
        producer.produce(topic, incident("broken").to_json())
        producer.flush(30)
        until(lambda: notifier.trouble() == "no channel takes messages")
        receiver.answers = lambda _: (200, {}, "ok")
        until(lambda: notifier.trouble() == "")
        with monkeypatch.context() as patched:
            patched.setattr(running, "_HANGS", -1.0)
            assert notifier.trouble() == "the process hangs"
        (teller,) = notifier._tellers
        teller.stop()
        until(lambda: notifier.trouble() == "the thread of a channel has ended")
    finally:
        stopped.set()
        process.join(30)
        notifier.close()
