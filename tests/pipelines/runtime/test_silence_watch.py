"""The silence of real topics: records and heartbeats in Kafka, and what is written to the topic `silences`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from datagen.kafka_writer import KafkaWriter
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka import content
from engine.kafka.admin import ensure_topics
from engine.kafka.heartbeat_sender import HeartbeatSender
from pipelines.contracts import topics
from pipelines.contracts.records import Silence
from pipelines.contracts.settings import Settings, load
from pipelines.runtime.silence_watch import SilenceWatch, silence_watch
from tests.conftest import Endpoints


def _written(settings: Settings) -> list[Silence]:
    found = content.values(settings.kafka.bootstrap or "", settings.topic(topics.SILENCES))
    return [Silence.from_json(each) for each in found if each != HEARTBEAT]


def _until(settings: Settings, wanted: Callable[[list[Silence]], bool]) -> list[Silence]:
    deadline = time.monotonic() + 60
    while not wanted(found := _written(settings)):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


def test_topics_that_fall_silent_are_written_and_so_is_their_first_record_and_a_new_process_goes_on(
    endpoints: Endpoints,
) -> None:
    namespace = f"s{uuid.uuid4().hex[:8]}."
    settings = load(namespace=namespace, **{"kafka.bootstrap": endpoints.bootstrap, "incidents.silence": "2s"})
    names = [settings.topic(name) for name in (topics.RAW_JSON, topics.RAW_COLLECTD)]
    wanted = {settings.topic(name): topics.config(name) for name in (*topics.FROM_AGENTS, topics.SILENCES)}
    ensure_topics(endpoints.bootstrap, wanted, 2)

    def send() -> None:
        with KafkaWriter(endpoints.bootstrap) as writer:
            writer.write(names[0], [b"{}"] * 3, ["k"] * 3)

    def watched() -> tuple[SilenceWatch, HeartbeatSender]:
        watch = SilenceWatch(settings, names, every=0.2)
        return watch, HeartbeatSender(endpoints.bootstrap, names, 0.2, watch.beat)

    send()
    watch, sender = watched()
    with watch, sender:
        (began, *_) = _until(settings, bool)
    assert (began.input, began.until) == ("*", None)
    assert began.noticed - began.since >= 2_000
    watch, sender = watched()
    with watch, sender:
        send()
        # on a busy machine it is silent again before this has looked
        written = _until(settings, lambda found: any(each.until is not None for each in found))
        ended = next(each for each in written if each.until is not None)
    assert (ended.input, ended.since) == (began.input, began.since)
    assert (ended.until or 0) > began.noticed
    arrived = [each for each in content.content(endpoints.bootstrap, names[0]) if each.value() != HEARTBEAT]
    assert began.since == arrived[2].timestamp()[1] and ended.until == arrived[3].timestamp()[1]


def test_only_the_live_process_that_reads_what_agents_send_watches() -> None:
    settings = load()
    assert silence_watch(settings, ["detector"], ["rules"]) is None
    assert silence_watch(settings, ["normalizer"], ["rules", "telemetry.json"]) is not None
