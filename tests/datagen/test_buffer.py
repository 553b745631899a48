"""The buffer on disk: bounded, honest about what it drops, sent once; and the sentences about an outage."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from datagen import readback
from datagen.buffer import DiskBuffer
from datagen.buffered import BufferedWriter, buffered
from datagen.kafka_writer import KafkaWriter
from datagen.outage import Dropped, Outage, Standing
from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load

HOUR = 3_600_000
MB = 2**20


def sentences(steps: list[tuple[float, int, int]]) -> list[tuple[float, str]]:
    """What is told, and when, of a writer that stands so at these seconds: (second, waiting, delivered)."""
    at, told = 0.0, []
    outage = Outage(lambda text: told.append((at, text)), "in the buffer", lambda: at)
    for second, waiting, delivered in steps:
        at = second
        outage.update(Standing(waiting, delivered))
    return told


def test_an_outage_is_told_every_ten_seconds_while_it_lasts_and_once_when_all_is_made_up() -> None:
    down = [(second, 10 * int(second), 100) for second in range(1, 31)]
    back = [(31.0, 250, 150), (32.0, 50, 350), (33.0, 10, 410), (34.0, 0, 420)]
    assert sentences([(0.0, 0, 100), *down, *back]) == [
        (5.0, "kafka: no answer for 5 s; 50 records wait in the buffer, trying again"),
        (15.0, "kafka: no answer for 15 s; 150 records wait in the buffer, trying again"),
        (25.0, "kafka: no answer for 25 s; 250 records wait in the buffer, trying again"),
        (33.0, "kafka: answers again after 31 s; the 300 records that had waited were delivered"),
    ]


def test_a_slow_broker_that_goes_on_answering_and_a_source_that_has_nothing_to_say_are_no_outages() -> None:
    assert sentences([(second, 400_000, second) for second in range(60)]) == []
    assert sentences([(second, 0, 7) for second in range(60)]) == []


@pytest.fixture
def dropped() -> list[Dropped]:
    return []


def buffer(
    path: Path, dropped: list[Dropped], size: int = MB, age: int = HOUR, at: list[int] | None = None
) -> DiskBuffer:
    at = at or [0]
    return DiskBuffer(path / "b.sqlite", size, age, dropped.append, lambda: at[0])


def contents(found: DiskBuffer) -> list[str | None]:
    return [value for parcel in found.head(1_000_000) for value in parcel.values]


def random_text(seed: int) -> str:
    """Six hundred characters that do not compress."""
    return "".join(hashlib.sha256(f"{seed} {i}".encode()).hexdigest() for i in range(10))[:600]


def test_a_full_buffer_drops_its_oldest_messages_says_which_and_its_file_stays_as_small(
    tmp_path: Path, dropped: list[Dropped]
) -> None:
    at = [0]
    found = buffer(tmp_path, dropped, size=MB, at=at)
    for second in range(5_000):
        at[0] = second
        found.append("t", ["k"], [random_text(second)])
    left = contents(found)
    assert left == [random_text(second) for second in range(5_000 - len(left), 5_000)]
    assert 1_000 < len(left) < 3_000, "a message takes some 350 to 600 bytes, compressed"
    assert (tmp_path / "b.sqlite").stat().st_size <= 1.1 * MB
    assert sum(some.records for some in dropped) == 5_000 - len(left) == 5_000 - found.waiting
    assert (min(some.first for some in dropped), max(some.last for some in dropped)) == (0, 4_999 - len(left))
    assert {some.reason for some in dropped} == {"the buffer holds no more than 1 MB (setting buffer.size)"}


def test_old_messages_are_dropped_also_when_the_buffer_is_opened_again(tmp_path: Path, dropped: list[Dropped]) -> None:
    at = [0]
    found = buffer(tmp_path, dropped, age=HOUR, at=at)
    for minute in range(0, 90, 30):
        at[0] = minute * 60_000
        found.append("t", ["k"], [f"{minute}"])
    assert not dropped
    at[0] = 61 * 60_000
    found.append("t", ["k"], ["61"])
    assert dropped == [Dropped(1, 0, 0, "they waited for more than 1 h (setting buffer.age)")]
    assert contents(found) == ["30", "60", "61"]
    found.close()
    at[0] = 2 * HOUR
    again = buffer(tmp_path, dropped, age=HOUR, at=at)
    assert contents(again) == ["60", "61"] and again.waiting == 2
    assert dropped[-1].records == 1


def test_what_is_with_the_kafka_client_is_not_dropped_since_nobody_can_call_it_back(
    tmp_path: Path, dropped: list[Dropped]
) -> None:
    at = [0]
    found = buffer(tmp_path, dropped, age=HOUR, at=at)
    found.append("t", ["k"], ["under way"])
    assert [parcel.values for parcel in found.hand_over(10)] == [["under way"]]
    found.append("t", ["k"], ["waits"])
    at[0] = 2 * HOUR
    found.append("t", ["k"], ["new"])
    assert contents(found) == ["under way", "new"]
    assert [some.records for some in dropped] == [1]


@pytest.mark.parametrize("spoilt", ["a folder in its place", "no database", "another process"])
def test_a_buffer_that_cannot_be_used_is_an_error_that_says_why(
    spoilt: str, tmp_path: Path, dropped: list[Dropped]
) -> None:
    path = tmp_path / "b.sqlite"
    if spoilt == "a folder in its place":
        path.mkdir()
    elif spoilt == "no database":
        path.write_text("hello, this is no database at all" * 100)
    else:
        buffer(tmp_path, dropped).append("t", ["k"], ["v"])
    with pytest.raises(NewnormalError, match="BUFFER_UNUSABLE") as refused:
        buffer(tmp_path, dropped)
    assert refused.value.where == str(path)
    assert ("runs already" in refused.value.what) == (spoilt == "another process")


def test_a_writer_without_a_broker_takes_what_it_can_hold_and_says_in_the_end_what_it_dropped(tmp_path: Path) -> None:
    settings, told = load(state_dir=tmp_path, **{"buffer.size": "1m"}), []
    begun = time.monotonic()
    with buffered(settings, "me/too", lambda: "127.0.0.1:1", told.append) as writer:
        for number in range(4_000):
            writer.write("t", [random_text(number)], ["k"])
        assert time.monotonic() - begun < 5, "it must not wait for Kafka"
        left = writer.buffer.waiting
    assert time.monotonic() - begun < 15
    assert any(text.startswith(f"{left:,} records stay in the buffer {tmp_path}") for text in told), told
    (total,) = [text for text in told if text.startswith("in all, ")]
    assert total.startswith(f"in all, {4_000 - left:,} records of ") and "buffer.size" in total


def messages(endpoints: Endpoints, topic: str, least: int) -> list[str]:
    reader = Consumer({"bootstrap.servers": endpoints.bootstrap, "group.id": "test", "enable.partition.eof": True})
    reader.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while True:
        some = reader.consume(1_000, 10)
        found += [message.value().decode() for message in some if message.error() is None]
        if any(message.error() for message in some):
            reader.close()
            assert len(found) >= least
            return found


@pytest.fixture
def topic(endpoints: Endpoints, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"buffer-test.{time.time_ns()}"
    ensure_topics(endpoints.bootstrap, {name: {}}, partitions=1)
    yield name


@pytest.mark.servers
def test_what_a_forerunner_delivered_is_not_sent_again_and_the_rest_is_in_order(
    endpoints: Endpoints, topic: str, tmp_path: Path
) -> None:
    now, dropped = time.time_ns() // 1_000_000, []
    old = DiskBuffer(tmp_path / "b", MB, HOUR, dropped.append, lambda: now)
    for first in range(0, 12, 4):
        old.append(topic, ["k"] * 4, [f"{number}" for number in range(first, first + 4)])
    forerunner = Producer({"bootstrap.servers": endpoints.bootstrap})
    for parcel in old.head(12)[:2]:
        for index in parcel.left[: 4 if parcel.number == 1 else 2]:
            headers = {readback.HEADER: readback.name(parcel, index)}
            forerunner.produce(topic, parcel.values[index], "k", headers=headers)
    assert forerunner.flush(30) == 0
    old.close()
    heir = DiskBuffer(tmp_path / "b", MB, HOUR, dropped.append, lambda: now)
    outage = Outage(print, "in the buffer")
    with BufferedWriter(lambda: endpoints.bootstrap, heir, outage, lambda _bootstrap: None) as writer:
        writer.write(topic, ["12"], ["k"])
        writer.flush()
        assert heir.waiting == 0 and writer.delivered == 13
    assert messages(endpoints, topic, 13) == [f"{number}" for number in range(13)]


@pytest.mark.servers
def test_a_message_that_kafka_refuses_does_not_hold_up_those_behind_it_and_is_told(
    endpoints: Endpoints, topic: str, tmp_path: Path
) -> None:
    dropped: list[Dropped] = []
    found = DiskBuffer(tmp_path / "b", 64 * MB, HOUR, dropped.append)
    outage = Outage(print, "in the buffer")
    with BufferedWriter(lambda: endpoints.bootstrap, found, outage, lambda _bootstrap: None) as writer:
        writer.write(topic, ["before", "x" * 2_000_000, "after"], ["k"] * 3)
        writer.flush()
    assert messages(endpoints, topic, 2) == ["before", "after"]
    assert [(some.records, some.reason[:20]) for some in outage.dropped()] == [(1, "Kafka refused them: ")]


def test_a_full_disk_costs_what_comes_and_not_the_agent(tmp_path: Path, dropped: list[Dropped]) -> None:
    found = buffer(tmp_path, dropped)
    found.append("t", ["k"], ["kept"])
    pages = found._base.execute("PRAGMA page_count").fetchone()[0]
    found._base.execute(f"PRAGMA max_page_count = {pages}")
    found.append("t", ["k"] * 100, [random_text(number) for number in range(100)])
    assert contents(found) == ["kept"] and found.waiting == 1
    assert dropped[0].records == 100 and str(sqlite3.OperationalError("database or disk is full")) in dropped[0].reason


def test_a_writer_that_waits_keeps_its_memory_bounded_and_ends_soon_after_it_is_told_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("datagen.kafka_writer._QUEUE", 1_000)
    monkeypatch.setattr("datagen.kafka_writer._BATCH", 100)
    stop = threading.Event()
    threading.Timer(1.0, stop.set).start()
    begun = time.monotonic()
    said = "DELIVERY_FAILED: 1,000 records were not acknowledged: no answer for"
    with pytest.raises(NewnormalError, match=said), KafkaWriter("127.0.0.1:1", stop) as writer:
        writer.write("t", ["v"] * 5_000, ["k"] * 5_000)
    assert 1 < time.monotonic() - begun < 30


def test_the_thread_that_sends_outlives_errors_that_nobody_thought_of(tmp_path: Path, dropped: list[Dropped]) -> None:
    outage, tries = Outage(print, "in the buffer"), []

    def address() -> str:
        tries.append(1)
        return "127.0.0.1:1"

    def prepare(_bootstrap: str) -> None:
        raise TimeoutError

    with BufferedWriter(address, buffer(tmp_path, dropped), outage, prepare) as writer:
        deadline = time.monotonic() + 30
        while len(tries) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        writer.write("t", ["v"], ["k"])
        assert len(tries) >= 2 and writer.buffer.waiting == 1
