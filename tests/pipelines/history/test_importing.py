"""Slices of history in the archive: complete or not there, adjacent, in the order of time, beside a running archive."""

from __future__ import annotations

import random
from pathlib import Path
from threading import Event

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.columns.partitioning import crc32
from engine.formats.columnar import decode
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.history import importing
from pipelines.history.estimate import probed
from pipelines.history.importing import HistorySource, Import, alone, bounds, removed
from pipelines.history.intake import Intake, TooMuchError
from pipelines.history.place import Edge, imported
from pipelines.jobs.archive import files
from pipelines.jobs.archive.layout import place
from pipelines.jobs.archive.reader import ArchiveReader
from pipelines.jobs.archive.writer import ArchiveWriter
from tests.pipelines.archive.test_archive_files import kafka, message

MINUTE, HOUR = 60_000, 3_600_000
BEGIN = 1_795_219_200_000 - 30 * HOUR
END = BEGIN + 50 * HOUR
PLACES = {0: 0, 1: 7, 2: 0, 3: 0}
SCHEMA = Telemetry.arrow_schema()

Rows = list[tuple[int, str, str, float, str]]


def samples(times: list[int]) -> Rows:
    """A sample of some machine at each time."""
    return [(BEGIN + t, f"m-{n % 5}", "cpu", float(n), "gauge") for n, t in enumerate(times)]


class Given(HistorySource):
    """A source that has some samples, and gives at most so many at a time; it ends the process where it is told to."""

    origin = "given"

    def __init__(self, rows: Rows, most: int = 10**9) -> None:
        self.rows, self.most = rows, most
        self.asked: list[tuple[int, int]] = []

    def read(self, begin: int, end: int, intake: Intake) -> pa.Table:
        self.asked.append((begin, end))
        found = [row for row in self.rows if begin <= row[0] < end]
        if len(found) > self.most:
            raise TooMuchError(f"{len(found)} rows")
        random.Random(1).shuffle(found)
        return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], SCHEMA)


class DiedError(Exception):
    """The process was killed."""


def configured(tmp_path: Path, **more: object) -> Settings:
    return load(**{"archive.path": str(tmp_path / "archive"), **more})


def run(settings: Settings, source: HistorySource, begin: int = BEGIN, end: int = END) -> None:
    """One start of an import: it goes on where the archive says."""
    work = Import(settings, source, Intake(settings), Event())
    with alone(work.folder):
        there = ArchiveReader(work.folder, Telemetry)
        first = min((times[0] for _, times in imported(there.writes)), default=None)
        found = Edge({p: there.first.get(p, PLACES[p]) for p in PLACES}, first, "given" if first else "")
        first_time, last = bounds(settings, found, begin, None if first else end, end)
        if first_time < last:
            work.run(found, first_time, last, lambda *_: None)


def stored(settings: Settings) -> Rows:
    folder = importing.archive_folder(settings).records
    parts = [pl.read_parquet(file, hive_partitioning=False) for file in folder.glob("day=*/part-import-*.parquet")]
    return sorted(row for part in parts for row in part.select(SCHEMA.names).rows())


spread = st.lists(st.integers(0, END - BEGIN - 1) | st.sampled_from([0, HOUR, 30 * HOUR - 1, 30 * HOUR]), max_size=60)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spread, st.lists(st.integers(1, 12), max_size=4), st.integers(3, 60))
def test_however_often_it_is_killed_each_sample_is_there_once_and_what_is_there_is_usable(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], kills: list[int], most: int
) -> None:
    """The process ends when it has put so many files in their places: a part, or the list that completes a slice."""
    configuration, rows = configured(tmp_path_factory.mktemp("killed")), samples(times)
    for after in [*kills, 0]:
        left = after

        def dying(made: Path, final: Path) -> None:
            nonlocal left
            place(made, final)
            left -= 1
            if left == 0:
                raise DiedError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "place", dying)
            try:
                run(configuration, Given(rows, max(most, 8)))
            except DiedError:
                pass
            except NewnormalError as error:  # more samples at one time than may be read together
                assert error.code == "IMPORT_TOO_LARGE"
                return
        _usable(configuration, rows)
    assert stored(configuration) == sorted(rows)


def _usable(settings: Settings, rows: Rows) -> None:
    """What the archive lists: adjacent to the log, the newest samples, in order, none behind its watermark."""
    reader = ArchiveReader(importing.archive_folder(settings), Telemetry)
    if not reader.writes:
        return
    assert reader.end == PLACES
    assert reader.first == reader.start
    found: Rows = []
    first = min(int(write.name.split("-")[1]) for write in reader.writes)
    for partition, ends in PLACES.items():
        watermark = 0
        table = pa.Table.from_batches(reader.messages(partition, reader.first[partition], ends))
        assert table["offset"].to_pylist() == list(range(reader.first[partition], ends))
        assert table["arrived"].to_pylist() == sorted(table["arrived"].to_pylist())
        for value, arrived in zip(table["value"].to_pylist(), table["arrived"].to_pylist(), strict=True):
            records, told = decode(value, SCHEMA)
            assert told is not None
            for row in records.to_pylist():
                assert watermark < row["time"] < arrived
                assert crc32(row["entity"]) % len(PLACES) == partition
                found.append(tuple(row.values()))
            assert told >= watermark
            watermark = told
        assert watermark == END - 1 - duration_ms(settings.watermark.out_of_orderness)
    assert sorted(found) == sorted(row for row in rows if row[0] >= first)


def test_the_archive_of_the_log_goes_on_beside_it_and_neither_removes_files_of_the_other(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    folder = importing.archive_folder(settings)
    run(settings, Given(samples([0, HOUR, 49 * HOUR])))
    half = folder.part("2026-11-20", "import-0000000000001-0000000000002")
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_bytes(b"being written")
    live = ArchiveWriter(folder, Telemetry)  # a start of the job
    assert half.exists()
    rows = kafka(*((0, offset, message(END + offset)) for offset in range(5)))
    live.write("a-000000000", rows, {0: 0, 1: 7, 2: 0, 3: 0}, {0: 5, 1: 7, 2: 0, 3: 0})
    reader = ArchiveReader(folder, Telemetry)
    assert reader.start == reader.first
    assert reader.end == {0: 5, 1: 7, 2: 0, 3: 0}
    run(settings, Given(samples([0])), BEGIN - HOUR)
    assert not half.exists()
    assert folder.listed("a-000000000").exists()
    assert removed(settings) == (BEGIN - HOUR, END)
    assert removed(settings) is None
    assert [write.name for write in folder.writes()] == ["a-000000000"]
    assert not stored(settings)


def test_two_imports_at_a_time_are_refused(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    with alone(importing.archive_folder(settings)), pytest.raises(NewnormalError, match="ALREADY_RUNNING"):
        run(settings, Given([]))


def test_an_archive_that_would_delete_what_is_imported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match=r"retention\.archive"):
        run(configured(tmp_path, **{"retention.archive": "1d"}), Given([]))


def test_no_archive_is_refused() -> None:
    with pytest.raises(NewnormalError, match=r"archive\.path is empty"):
        importing.archive_folder(load())


@pytest.mark.parametrize("end", [END + 1, END + HOUR])
def test_an_end_behind_the_first_live_sample_is_refused(tmp_path: Path, end: int) -> None:
    with pytest.raises(NewnormalError, match="IMPORT_BOUNDS"):
        bounds(configured(tmp_path), Edge(PLACES, END, ""), BEGIN, end, END + 2 * HOUR)


def test_a_full_disk_is_said_and_what_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, rows = configured(tmp_path), samples([0, 40 * HOUR, 49 * HOUR + 5])
    left = 3

    def full(made: Path, final: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28, "No space left on device")
        place(made, final)

    monkeypatch.setattr(files, "place", full)
    with pytest.raises(NewnormalError, match="FILE_UNUSABLE"):
        run(settings, Given(rows))
    monkeypatch.setattr(files, "place", place)
    _usable(settings, rows)
    run(settings, Given(rows))
    assert stored(settings) == sorted(rows)


def test_slices_grow_where_little_is_and_shrink_where_much_is(tmp_path: Path) -> None:
    source = Given(samples([*range(0, 60 * MINUTE, 1_000)]), most=500)
    settings = configured(tmp_path)
    run(settings, source)
    assert stored(settings) == sorted(source.rows)
    lengths = [end - begin for begin, end in source.asked]
    assert max(lengths) > 8 * HOUR
    assert min(lengths) < 10 * MINUTE


def test_a_minute_with_too_much_is_refused_with_a_code(tmp_path: Path) -> None:
    with pytest.raises(NewnormalError, match="IMPORT_TOO_LARGE"):
        run(configured(tmp_path), Given(samples([49 * HOUR] * 20), most=10))


@pytest.mark.parametrize("end", [BEGIN + 4 * MINUTE, BEGIN + 50 * MINUTE, END])
def test_an_estimate_of_too_much_is_of_one_minute_and_has_a_code_if_that_is_too_much(tmp_path: Path, end: int) -> None:
    intake, each_second = Intake(configured(tmp_path)), samples([*range(0, END - BEGIN, 1_000)])
    with pytest.raises(NewnormalError, match="IMPORT_TOO_LARGE"):
        probed(Given(each_second, most=20), intake, BEGIN, end)
    told = probed(Given(each_second, most=61), intake, BEGIN, end)
    assert told.samples == pytest.approx((end - BEGIN) / 1_000, rel=0.05)


def test_a_micro_batch_of_a_replay_is_bounded_in_records_however_few_messages_they_came_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = configured(tmp_path)
    monkeypatch.setattr("pipelines.history.writing._MESSAGE_ROWS", 20)
    run(settings, Given(samples(np.linspace(0, 50 * HOUR - 1, 3_000, dtype=int).tolist())))
    reader = ArchiveReader(importing.archive_folder(settings), Telemetry)
    monkeypatch.setattr("pipelines.jobs.archive.reader._BATCH_ROWS", 200)
    at, steps = dict(reader.first), 0
    while at != PLACES:
        ahead = reader.ahead(at, 50_000)
        assert ahead != at
        rows = sum(
            decode(v, SCHEMA)[0].num_rows
            for p in PLACES
            for batch in reader.messages(p, at[p], ahead[p])
            for v in batch["value"].to_pylist()
        )
        assert rows <= 200 + 4 * 80  # a message of each partition, of 80 records at most, may be beyond its share
        at, steps = ahead, steps + 1
    assert steps >= 5
