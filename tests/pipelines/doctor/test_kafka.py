"""Doctor finds what is wrong in Kafka; each finding is provoked on a real broker."""

from __future__ import annotations

import os
import time
from typing import Any

import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from engine.formats.dead_letters import DeadLetter, dead_letter
from engine.formats.heartbeat import HEARTBEAT
from engine.kafka.admin import delete_topics, ensure_topics
from engine.kafka.exactly_once import TransactionalWriter
from engine.runtime.messages import Outgoing
from pipelines.contracts import topics as names
from pipelines.doctor.context import Context
from pipelines.doctor.examination import examine
from pipelines.doctor.finding import Finding
from pipelines.doctor.jobs.checkpoints import continuations
from pipelines.doctor.jobs.unread_versions import unread_versions
from pipelines.doctor.kafka.clock import kafka_clock
from pipelines.doctor.kafka.input import late, refused, silent
from pipelines.doctor.kafka.reading import reading
from pipelines.doctor.kafka.topics import topics
from pipelines.doctor.kafka.watermarks import watermarks
from pipelines.runtime.processes import JobProcess
from pipelines.runtime.program import CHAIN
from pipelines.versions.plan import planned
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version
from tests.pipelines.doctor.conftest import Make, begun, now, sample, send

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]
MINUTE = 60_000


def codes(findings: Any) -> list[str]:
    return [each.code for each in findings]


def one(findings: Any) -> Finding:
    (finding,) = findings
    return finding  # type: ignore[no-any-return]


def test_where_no_job_ever_ran_that_is_all_that_is_said_of_the_topics(make: Make) -> None:
    assert codes(topics(make())) == ["NEVER_STARTED"]


def test_a_pipeline_that_was_just_started_has_no_input_and_nothing_else(context: Context, make: Make) -> None:
    found = examine(make())
    of_kafka = [each.code for each in found.findings if each.kind.subject in ("Kafka", "Jobs")]
    assert of_kafka == ["NO_INPUT"]
    assert "CHECK_NOT_MADE" not in codes(found.findings)


def test_a_topic_that_was_deleted_and_another_number_of_partitions_are_named(context: Context, make: Make) -> None:
    assert topics(context) == []
    gone = context.settings.reads(names.FEATURES)
    delete_topics(context.bootstrap, [gone])
    deadline = time.monotonic() + 30
    while not (found := topics(context)) and time.monotonic() < deadline:
        time.sleep(0.1)  # the broker deletes in the background
    assert (one(found).code, one(found).where) == ("TOPICS_MISSING", gone)
    other = {each.code: each for each in topics(make(**{"kafka.partitions": 4}))}
    assert f"{context.settings.reads(names.TELEMETRY)} has 2" in other["PARTITIONS_FIXED"].what


def test_a_retention_shorter_than_the_allowed_lateness_is_found(make: Make) -> None:
    short = make(**{"kafka.retention": "1m"})
    CHAIN.prepare(short.settings)
    finding = one(topics(short))
    assert finding.code == "RETENTION_SHORT"
    assert finding.what.startswith("messages are kept for 1 min, late records are waited for 10 min")
    assert short.settings.reads(names.TELEMETRY) in finding.where
    assert short.settings.reads(names.RULES) not in finding.where.split(", "), "rules are kept for ever"


def test_heartbeats_alone_are_no_input_and_one_record_is(context: Context, make: Make) -> None:
    assert "no message at all" in one(silent(context)).what
    send(context, names.RAW_JSON, (0, HEARTBEAT), (1, HEARTBEAT))
    beating = one(silent(make()))
    assert (beating.code, "heartbeats alone" in beating.what) == ("NO_INPUT", True)
    send(context, names.RAW_TELEGRAF, (1, b"{}"))
    assert silent(make()) == []


def letters(context: Context, code: str, *offsets: int) -> None:
    """Dead letters of the normalizer about messages of partition 0."""
    topic = context.settings.reads(names.RAW_JSON)
    for offset in offsets:
        letter = dead_letter(
            "normalizer", code, f"why {offset}", b"x", time=now(), topic=topic, partition=0, offset=offset
        )
        send(context, names.DEADLETTER, (0, letter.to_json()))


def test_dead_letters_that_grow_are_told_with_the_most_frequent_code_and_an_example(
    context: Context, make: Make
) -> None:
    assert refused(context) == []
    send(context, names.RAW_JSON, *[(0, b"x")] * 3, (0, sample(now())), (1, HEARTBEAT))
    letters(context, "JSON_MALFORMED", 0, 2)
    letters(context, "FIELD_INVALID", 1)
    mark = DeadLetter(time=now(), topic="t", partition=0, offset=0, job="n", code="X", reason="r", retried=now())
    send(context, names.DEADLETTER, (0, mark.to_json()))  # of one that was sent again
    finding = one(refused(make()))
    assert finding.code == "DEAD_LETTERS_GROW"
    topic = context.settings.reads(names.RAW_JSON)
    said = f"3 dead letters in the last ten minutes: mostly JSON_MALFORMED (2 of 3), e.g. {topic}/0@2, refused by"
    assert said in finding.what
    assert refused(make(lambda: now() + 11 * MINUTE)) == [], "they are old by then"


def test_a_topic_of_which_all_messages_are_refused_is_broken(context: Context, make: Make) -> None:
    send(context, names.RAW_JSON, (0, b"x"), (0, b"y"), (1, HEARTBEAT))
    letters(context, "JSON_MALFORMED", 0)
    assert one(refused(make())).code == "DEAD_LETTERS_GROW", "one of the two was used"
    letters(context, "JSON_MALFORMED", 1)
    finding = one(refused(make()))
    assert (finding.code, finding.where) == ("INPUT_REFUSED", context.settings.reads(names.RAW_JSON))
    assert finding.what.startswith("all of the last 2 messages: mostly JSON_MALFORMED")


def beat(context: Context) -> None:
    """A heartbeat to each partition of the agents' topics."""
    for name in names.FROM_AGENTS:
        send(context, name, (0, HEARTBEAT), (1, HEARTBEAT))


def test_a_partition_far_behind_the_others_holds_the_watermark_back(context: Context, make: Make) -> None:
    at = now()
    beat(context)
    send(context, names.RAW_JSON, (0, sample(at)), (1, sample(at - 120 * MINUTE, "slow")))
    finding = one(watermarks(make()))
    assert (finding.code, finding.where) == ("WATERMARK_HELD_BACK", f"{context.settings.reads(names.RAW_JSON)}/1")
    assert "(slow), 2 h behind that of the other partitions" in finding.what
    idle = make(**{"watermark.idle_after": "1ms"})
    time.sleep(0.01)  # a later arrival at the broker, which counts in milliseconds
    beat(context)
    assert watermarks(idle) == [], "heartbeats since then make it idle"


def test_partitions_without_a_message_hold_the_watermark_back(context: Context, make: Make) -> None:
    beat(context)
    assert watermarks(make()) == []
    quiet = make(**{"kafka.partitions": 2})
    delete_and_make(quiet, quiet.settings.reads(names.RAW_COLLECTD))
    send(context, names.RAW_JSON, (0, sample(now())))
    finding = one(watermarks(make()))
    topic = quiet.settings.reads(names.RAW_COLLECTD)
    assert (finding.code, finding.where) == ("WATERMARK_HELD_BACK", f"{topic}/0, {topic}/1")


def delete_and_make(context: Context, topic: str) -> None:
    """An empty topic in the place of one with messages."""
    delete_topics(context.bootstrap, [topic])
    deadline = time.monotonic() + 30
    while topic in AdminClient({"bootstrap.servers": context.bootstrap}).list_topics(timeout=10).topics:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    ensure_topics(context.bootstrap, {topic: {}}, 2)


def test_a_machine_whose_clock_is_ahead_is_named(context: Context, make: Make) -> None:
    beat(context)
    at = now()
    send(context, names.RAW_JSON, (0, sample(at)), (0, sample(at + 40_000, "fast")), (1, sample(at)))
    finding = one(watermarks(make()))
    assert (finding.code, finding.where) == ("CLOCK_AHEAD", f"{context.settings.reads(names.RAW_JSON)}/0")
    assert finding.what.startswith("event times of fast lie up to ")
    refused_ones = make(**{"watermark.max_ahead": "10s"})
    assert watermarks(refused_ones) == [], "the normalizer refuses them: they do not move the watermark"


def running(job: str, seconds: float) -> JobProcess:
    """This process, as one that has run a job for some time."""
    return JobProcess(os.getpid(), psutil.Process().create_time() - seconds, "http://x", (job,))


def test_unread_messages_of_a_job_that_stands_still_lags_or_does_not_run(context: Context, make: Make) -> None:
    topic = context.settings.reads(names.TELEMETRY)
    done = begun(context.settings, "extractor", {topic: {"0": 1, "1": 0}})
    send(context, names.TELEMETRY, (0, b"x"), (0, b"x"), (0, b"x"), (1, b"x"), at=now() - 5 * MINUTE)
    send(context, names.TELEMETRY, (1, b"x"))
    idle = one(reading(make()))
    assert (idle.code, f"4 of {topic}" in idle.what) == ("JOB_NOT_RUNNING", True)
    runs = (running("extractor", 3_600.0),)
    lag = one(reading(make(processes=runs)))
    assert (lag.code, lag.where) == ("LAG", topic)
    assert lag.what == "extractor has 4 messages to read, 3 of them for a minute or longer"
    os.utime(done, (time.time() - 600, time.time() - 600))
    stalled = one(reading(make(processes=runs)))
    assert (stalled.code, "10 min ago; 4 messages wait" in stalled.what) == ("JOB_STALLED", True)


def test_a_job_that_has_read_everything_is_no_finding(context: Context, make: Make) -> None:
    topic = context.settings.reads(names.TELEMETRY)
    send(context, names.TELEMETRY, (0, b"x"), at=now() - 5 * MINUTE)
    begun(context.settings, "extractor", {topic: {"0": 1, "1": 0}})
    assert reading(make()) == []


def test_unread_messages_that_kafka_will_soon_delete_are_found(context: Context, make: Make) -> None:
    begun(context.settings, "extractor", {context.settings.reads(names.TELEMETRY): {"0": 0, "1": 0}})
    send(context, names.TELEMETRY, (0, b"x"), (0, b"x"), at=now() - 6 * 24 * 60 * MINUTE)
    found = {each.code: each for each in reading(make())}
    assert found.keys() == {"JOB_NOT_RUNNING", "OFFSETS_NEARLY_GONE"}
    assert found["OFFSETS_NEARLY_GONE"].what.startswith("extractor has not read 2 messages")


def test_messages_that_kafka_has_deleted_before_a_job_read_them_are_found(context: Context, make: Make) -> None:
    topic = context.settings.reads(names.TELEMETRY)
    begun(context.settings, "extractor", {topic: {"0": 1, "1": 0}})
    send(context, names.TELEMETRY, *[(0, b"x")] * 5)
    assert continuations(make()) == []
    client = AdminClient({"bootstrap.servers": context.bootstrap})
    for future in client.delete_records([TopicPartition(topic, 0, 4)]).values():
        future.result(30)
    finding = one(continuations(make()))
    assert (finding.code, f"3 messages of {topic} that extractor" in finding.what) == ("OFFSETS_MISSING", True)


def test_output_without_its_checkpoint_and_a_checkpoint_older_than_its_output_are_found(
    context: Context, make: Make
) -> None:
    settings = context.settings
    writer = TransactionalWriter(
        context.bootstrap, f"{settings.owner}extractor", settings.topic(names.LEDGER), "identity"
    )
    output = settings.writes(names.FEATURES)
    for number in (0, 1):
        writer.write(number, [Outgoing.of(output, 0, [b"x"])])
    writer.close()
    assert "extractor has written to" in one(continuations(make())).what
    assert codes(continuations(make())) == ["CHECKPOINT_MISSING"]
    begun(settings, "extractor", {settings.reads(names.TELEMETRY): {"0": 0, "1": 0}}, "identity")
    behind = one(continuations(make()))
    assert behind.code == "CHECKPOINT_BEHIND"
    assert "extractor has written micro-batch 1, its checkpoint ends with 0" in behind.what


def test_late_records_of_the_last_ten_minutes_are_counted(context: Context, make: Make) -> None:
    assert late(context) == []
    send(context, names.FEATURES_LATE, (0, b"x"), (1, b"x"), at=now() - 5 * MINUTE)
    send(context, names.FEATURES_LATE, (0, b"x"))
    finding = one(late(make()))
    assert (finding.code, finding.where) == ("LATE_GROWING", context.settings.reads(names.FEATURES_LATE))
    assert finding.what.startswith("3 messages")
    assert late(make(lambda: now() + 11 * MINUTE)) == []


def test_a_clock_behind_that_of_kafka_is_found(context: Context, make: Make) -> None:
    send(context, names.RAW_JSON, (0, HEARTBEAT))
    assert kafka_clock(context) == []
    finding = one(kafka_clock(make(lambda: now() - 60 * MINUTE)))
    assert finding.code == "CLOCK_OFF"
    assert "1 h in the future" in finding.what


def test_a_version_that_nobody_reads_is_named(context: Context, make: Make) -> None:
    assert unread_versions(context) == []
    second = planned("v2", Version.first(), "detector", None, None, {}, now())
    Registry(context.settings).put(second)
    assert unread_versions(make()) == [], "it was not started yet: nothing is kept for it"
    mine = context.settings.of(second.names)
    ensure_topics(context.bootstrap, {mine.writes(name): {} for name in names.FROM_JOBS}, 2)
    finding = one(unread_versions(make()))
    assert (finding.code, finding.where) == ("VERSION_UNREAD", "v2")
    assert "0 documents" in finding.what
