"""Recorded series: read with their faults counted, played in order and on time."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from datagen.jsonlines import to_json
from datagen.player import load, programme, send
from datagen.series import SeriesReport, read_series
from engine.spec.duration import epoch_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from tests.datagen.in_memory import CollectSink, VirtualClock

NOW = 1_800_000_000_000
DATA = Path(__file__).parents[2].parent / "shared" / "data"


def _data(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"the data set {name} is not at {DATA}")
    return DATA / name


def play(
    file: Path, sink: CollectSink, speed: float = 0, shift_to_now: bool = False, clock: VirtualClock | None = None
) -> tuple[int, SeriesReport]:
    """Plays a file: records sent, and the report."""
    clock = clock or VirtualClock(NOW)
    frame, (report,) = load([file])
    return send(programme(frame, speed, shift_to_now, clock.now()), sink, clock=clock), report


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "web-1.csv"
    path.write_text("time,cpu,mem,label\n100000000000,1,2,0\n100000020000,nan,3,0\n100000010000,,4,1\nx,1,2,0\n")
    return path


def test_faults_are_skipped_counted_and_told(csv: Path) -> None:
    frame, report = read_series(csv)
    assert frame.filter(metric="mem")["value"].to_list() == [2.0, 4.0, 3.0]
    assert frame.filter(metric="cpu")["value"].to_list() == [1.0]
    assert (report.rows, report.bad_times, report.missing, report.unsorted) == (4, 1, 2, 1)
    assert "2 missing values" in str(report)


@pytest.mark.parametrize(
    "time",
    ["2020-01-01 00:00:00", "2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00", "1577836800", "1577836800000"],
)
def test_times_are_read_in_the_usual_forms(tmp_path: Path, time: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"TimeStamp,Value,Label\n{time},1.5,0\n")
    frame, _ = read_series(path)
    assert frame.rows() == [(epoch_ms("2020-01-01"), None, "Value", 1.5)]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "time\n1\n"])
def test_a_file_that_is_no_series_is_refused_with_a_reason(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(NewnormalError, match="SERIES_UNREADABLE"):
        read_series(path)


def test_played_records_are_valid_and_keep_their_times(csv: Path) -> None:
    sink = CollectSink()
    played, _ = play(csv, sink)
    records = [Telemetry.from_json(line) for frame in sink.frames for line in to_json(frame, Telemetry)]
    assert played == len(records) == 4
    assert {(record.entity, record.kind) for record in records} == {("web-1", "gauge")}
    assert records[0].time == 100_000_000_000


@pytest.mark.parametrize(("speed", "first", "took"), [(0, NOW - 20_000, 0), (1, NOW, 20_000), (4, NOW - 15_000, 5_000)])
def test_shifted_series_never_run_ahead_of_the_clock(csv: Path, speed: float, first: int, took: int) -> None:
    clock, sink = VirtualClock(NOW), CollectSink()
    play(csv, sink, speed, shift_to_now=True, clock=clock)
    times = pl.concat(sink.frames)["time"]
    assert times.is_sorted() and times[0] == first
    assert clock.now() == NOW + took and times[-1] <= clock.now()


def test_files_of_the_same_name_are_told_apart_by_their_folder(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text("time,v\n1,1\n")
    frame, _ = load([tmp_path / "a/x.csv", tmp_path / "b/x.csv"])
    assert frame["entity"].to_list() == ["a/x", "b/x"]


def test_nab_can_be_played() -> None:
    file = _data("nab/data/realTweets/Twitter_volume_AAPL.csv")
    sink = CollectSink()
    played, report = play(file, sink)
    assert played == 15_902 and report.step_ms == 300_000
    assert Telemetry.from_json(to_json(sink.frames[0], Telemetry)[0]).metric == "value"


def test_cloud_monitoring_can_be_played_and_its_label_is_no_metric() -> None:
    folder = _data("cloud_monitoring")
    files = sorted(folder.rglob("*.csv"))
    frame, reports = load(files)
    assert len(reports) == len(files) and frame["metric"].unique().to_list() == ["Value"]
    assert frame["entity"].n_unique() == len(files)
