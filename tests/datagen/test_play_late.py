"""Old series played into a pipeline that has seen later times: `play` predicts what happens to them, and reports it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from datagen.player import programme
from datagen.prospects import prospects
from deploy.embedded.endpoints import Endpoints
from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.kafka.admin import ensure_topics
from engine.kafka.topic_watermarks import watermarks
from engine.runtime.shard import to_table
from engine.spec.duration import NEVER, iso
from engine.spec.errors import NewnormalError
from engine.testing import TestStream
from engine.testing.runners import run
from pipelines.cli.main import app
from pipelines.contracts import topics
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.extractor import extractor

T0 = 1_750_000_000_000
"""A multiple of ten seconds: the length of windows; they are open for ten minutes more."""
MINUTE, DAY = 60_000, 86_400_000


def samples(times: list[int], entity: str = "web-1") -> pl.DataFrame:
    return pl.DataFrame({"time": times, "entity": entity, "metric": "cpu", "value": 1.0, "kind": "gauge"})


def test_a_sample_is_too_late_if_its_window_and_the_ten_minutes_after_it_are_over(settings: Settings) -> None:
    times = [T0 - 610_000, T0 - 600_001, T0 - 600_000, T0, T0 + MINUTE, T0 + MINUTE + 1, 946_684_799_999]
    found = prospects(programme(samples(times), 0, False, T0), dict.fromkeys(range(4), T0), settings)
    assert (found.samples, found.late, found.ahead, found.early, found.to_be_judged) == (7, 2, 1, 1, 3)


def test_each_machine_goes_by_the_watermark_of_its_own_partition_and_none_is_late_without_one(
    settings: Settings,
) -> None:
    machines = [f"web-{number}" for number in range(20)]
    frame = pl.concat([samples([T0 - DAY], machine) for machine in machines])
    where = slots(frame["entity"], 4)
    found = prospects(programme(frame, 0, False, T0), {0: T0, 1: NEVER, 2: T0 - 2 * DAY, 3: T0}, settings)
    assert found.late == sum(place in (0, 3) for place in where) > 0
    assert prospects(programme(frame, 0, False, T0), {}, settings).late == 0


@pytest.mark.parametrize("every", [None, "2s"])
def test_what_is_foretold_is_what_the_extractor_does(every: str | None, tmp_path: Path) -> None:
    settings = load(state_dir=tmp_path, **{"window.every": every, "kafka.partitions": 1, "engine.shards": 1})
    rng = np.random.default_rng(1)
    times = [T0 - 600_000 + int(offset) for offset in rng.integers(-30_000, 30_000, 400)]
    frame = samples(sorted(times))
    stream = TestStream(T0, topics=("telemetry",)).advance_watermark("0s").add(*frame.to_dicts())
    late = len(run(extractor(settings), stream).late)
    assert prospects(programme(frame, 0, False, T0), {0: T0}, settings).late == late
    assert 100 < late < 300


class Pipeline:
    """As much of a pipeline as the player sees: topics with watermarks, written by the engine's own writer."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.bootstrap = settings.kafka.bootstrap or ""
        names = (topics.RAW_JSON, topics.TELEMETRY, topics.FEATURES_LATE, topics.DEADLETTER)
        ensure_topics(self.bootstrap, {settings.topic(name): {} for name in names}, settings.kafka.partitions)
        self.producer = Producer({"bootstrap.servers": self.bootstrap})

    def write(self, topic: str, partition: int, frame: pl.DataFrame, watermark: int | None) -> None:
        message = columnar.encode(to_table(frame, Telemetry), watermark)
        self.producer.produce(self.settings.topic(topic), message, partition=partition)

    def come_to(self, watermark: int) -> None:
        """Each partition tells a watermark; then some messages follow that tell none."""
        for partition in range(self.settings.kafka.partitions):
            self.write(topics.TELEMETRY, partition, samples([watermark], "somebody"), watermark)
            for _ in range(partition * 12):
                self.write(topics.TELEMETRY, partition, samples([watermark], "somebody"), None)
        assert self.producer.flush(30) == 0

    def received(self) -> int:
        reader = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test"})
        ends = [
            reader.get_watermark_offsets(TopicPartition(self.settings.topic(topics.RAW_JSON), partition), 10)[1]
            for partition in range(self.settings.kafka.partitions)
        ]
        reader.close()
        return sum(ends)

    def lag(self, sent: int, taken: pl.DataFrame, late: pl.DataFrame, seconds: float) -> None:
        """Takes in so many samples; an extractor that lags behind goes on, and says only much later what was late."""
        self.await_sent(sent)
        self.write(topics.TELEMETRY, 0, taken, T0 + MINUTE)
        self.producer.flush(30)
        for step in range(2):
            time.sleep(seconds / 2)  # the lag itself
            for partition in range(self.settings.kafka.partitions):
                self.write(topics.FEATURES, partition, taken[:0], T0 + step * MINUTE)
            self.producer.flush(30)
        self.write(topics.FEATURES_LATE, 0, late, None)
        self.producer.flush(30)

    def await_sent(self, sent: int) -> None:
        deadline = time.monotonic() + 60
        while self.received() < sent and time.monotonic() < deadline:
            time.sleep(0.1)

    def process(self, sent: int, taken: pl.DataFrame, late: pl.DataFrame) -> None:
        """Once so many samples have been sent: takes them in, and reports some as too late."""
        self.await_sent(sent)
        self.write(topics.TELEMETRY, 0, taken, T0)
        self.write(topics.FEATURES_LATE, 0, late, None)
        self.write(topics.FEATURES_LATE, 0, samples([T0 - DAY], "somebody else"), None)
        self.producer.flush(30)


@pytest.fixture
def pipeline(endpoints: Endpoints, tmp_path: Path) -> Iterator[Pipeline]:
    namespace = f"late{time.time_ns()}."
    yield Pipeline(endpoints.settings(load(state_dir=tmp_path / "state", namespace=namespace)))


def csv(path: Path, times: list[int]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("time,cpu\n" + "".join(f"{iso(moment)},{moment % 7}\n" for moment in times))
    return path


def play(pipeline: Pipeline, *arguments: str) -> tuple[str, NewnormalError | None]:
    """What `newnormal play` says, and the error that it ends with."""
    options = ["--kafka", pipeline.bootstrap, "--namespace", pipeline.settings.namespace]
    result = CliRunner().invoke(app, ["play", *options, *arguments], env={"COLUMNS": "300"})
    assert result.exception is None or isinstance(result.exception, NewnormalError | SystemExit), result.exception
    return result.output, result.exception if isinstance(result.exception, NewnormalError) else None


@pytest.mark.servers
def test_the_watermark_of_a_topic_is_the_last_that_each_partition_was_told(pipeline: Pipeline) -> None:
    topic = pipeline.settings.topic(topics.TELEMETRY)
    assert watermarks(pipeline.bootstrap, topic) == dict.fromkeys(range(4), NEVER)
    pipeline.come_to(T0 - DAY)
    pipeline.come_to(T0)
    assert watermarks(pipeline.bootstrap, topic) == dict.fromkeys(range(4), T0)
    assert watermarks(pipeline.bootstrap, "no-such-topic") == {}


@pytest.mark.servers
def test_series_of_which_nothing_could_be_judged_are_refused_with_what_to_do_and_nothing_is_sent(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    now = time.time_ns() // 1_000_000
    pipeline.come_to(now)
    old = csv(tmp_path / "old" / "old.csv", [T0 - second * 1_000 for second in range(100)])
    _, refused = play(pipeline, str(old))
    assert refused is not None and refused.code == "NOTHING_TO_JUDGE"
    assert "100 of 100 samples will be dropped as too late" in refused.what and iso(now) in refused.what
    assert "--shift-to-now: 100 samples would be judged" in refused.accepted
    assert "--namespace" in refused.accepted and "--anyway" in refused.accepted
    assert pipeline.received() == 0


@pytest.mark.servers
def test_shifting_is_not_recommended_where_it_would_not_help(pipeline: Pipeline, tmp_path: Path) -> None:
    """Ten days that end now: all but the last minutes would be too late all the same."""
    pipeline.come_to(time.time_ns() // 1_000_000)
    times = [T0 - 10 * DAY + hour * 60 * MINUTE for hour in range(240)]
    _, refused = play(pipeline, str(csv(tmp_path / "old" / "old.csv", times)))
    assert refused is not None and "--shift-to-now: 1 samples would be judged" in refused.accepted


@pytest.mark.servers
def test_what_is_partly_too_late_is_sent_with_a_word_before_and_the_pipelines_own_count_after(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    pipeline.come_to(T0)
    late, good = [T0 - DAY - MINUTE, T0 - DAY], [T0, T0 + 1_000, T0 + 2_000]
    folder = csv(tmp_path / "two" / "a.csv", late).parent
    csv(folder / "b.csv", good)
    dropped, taken = samples(late, "a"), pl.concat([samples(late, "a"), samples(good, "b")])
    work = threading.Thread(target=pipeline.process, args=(5, taken, dropped))
    work.start()
    said, refused = play(pipeline, str(folder))
    work.join()
    assert refused is None
    assert "2 of 5 samples will be dropped as too late" in said and "instead: " in said
    assert "5 samples sent" in said and pipeline.received() == 5
    assert "the pipeline has taken in 5 of 5 samples; 2 of them were dropped as too late" in said


@pytest.mark.servers
def test_an_extractor_that_lags_is_waited_for_before_the_late_ones_are_counted(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """Nothing was foretold to be late; some samples became so, as the watermark went on with those sent before."""
    pipeline.come_to(T0)
    ensure_topics(pipeline.bootstrap, {pipeline.settings.topic(topics.FEATURES): {}}, 4)
    sent = samples([T0, T0 + 1_000, T0 + 2_000], "a")
    work = threading.Thread(target=pipeline.lag, args=(3, sent, sent[:1], 9.0))
    work.start()
    said, refused = play(pipeline, str(csv(tmp_path / "one" / "a.csv", sent["time"].to_list())))
    work.join()
    assert refused is None
    assert "the pipeline has taken in 3 of 3 samples; 1 of them were dropped as too late" in said


@pytest.mark.servers
def test_with_anyway_they_are_sent_and_without_a_pipeline_that_takes_them_in_that_is_said(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datagen.aftermath._SECONDS", 1.0)
    pipeline.come_to(T0)
    said, refused = play(pipeline, str(csv(tmp_path / "old" / "old.csv", [T0 - DAY])), "--anyway")
    assert refused is None and pipeline.received() == 1
    assert "no pipeline has taken them in yet; what is too late will go to the topic" in said


def test_each_file_of_a_folder_is_a_machine_unless_told_otherwise(tmp_path: Path) -> None:
    folder = csv(tmp_path / "site" / "a.csv", [T0]).parent
    csv(folder / "b.csv", [T0])
    for options, machines in (([], {"a", "b"}), (["--entity", "me"], {"me"})):
        out = tmp_path / "out"
        done = CliRunner().invoke(app, ["play", str(folder), "--to", str(out), *options])
        assert done.exit_code == 0, done.output
        assert set(pl.read_ndjson(out / "telemetry.json")["host.name"]) == machines


def test_nothing_is_foretold_of_a_pipeline_that_has_seen_nothing_yet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"time": [1_400_000_000_000], "entity": ["a"], "metric": ["m"], "value": [1.0]})
    settings = load(state_dir=tmp_path)
    future = prospects(programme(frame, 0.0, False, 1_795_000_000_000), {0: NEVER, 1: NEVER}, settings)
    assert future.to_be_judged == 1
    assert future.lines(settings) == []
