"""What is written to the archive is what is read from it: any tool's records, and the very messages of the log."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.formats.columnar import decode, encode
from engine.runtime.intake import KAFKA
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from pipelines.jobs.archive import layout
from pipelines.jobs.archive.layout import TopicFolder
from pipelines.jobs.archive.reader import ArchiveReader
from pipelines.jobs.archive.writer import ArchiveWriter
from pipelines.runtime.archived_input import ends as archive_ends

MIDNIGHT = 1_795_305_600_000  # 2026-11-22
SCHEMA = Telemetry.arrow_schema()


def message(*times: int, watermark: int | None = None) -> bytes:
    rows = [{"time": t, "entity": f"m-{t % 7}", "metric": "cpu", "value": t / 8, "kind": "gauge"} for t in times]
    return encode(pa.Table.from_pylist(rows, SCHEMA), watermark)


def kafka(*messages: tuple[int, int, bytes | None]) -> pa.Table:
    rows = [
        {"value": value, "topic": "telemetry", "partition": partition, "offset": offset, "arrived": MIDNIGHT + offset}
        for partition, offset, value in messages
    ]
    return pa.Table.from_pylist(rows, KAFKA)


FIRST = kafka(
    (0, 3, message(MIDNIGHT - 5, MIDNIGHT - 1, watermark=NEVER)),
    (0, 4, message(MIDNIGHT + 2, MIDNIGHT - 3, MIDNIGHT + 1, watermark=MIDNIGHT - 7)),
    (0, 6, message(watermark=MIDNIGHT)),
    (1, 9, message(MIDNIGHT - 2)),
    (1, 10, b"\0heartbeat"),
    (1, 11, None),
    (1, 12, message(2**52, MIDNIGHT)),
)
SECOND = kafka((0, 8, message(MIDNIGHT + 50, watermark=MIDNIGHT + 9)), (1, 14, message(MIDNIGHT - 90, MIDNIGHT + 60)))
SPANS = (({0: 3, 1: 9}, {0: 8, 1: 14}), ({0: 8, 1: 14}, {0: 9, 1: 16}))


@pytest.fixture
def folder(tmp_path: Path) -> TopicFolder:
    return TopicFolder(tmp_path, "telemetry")


def written(folder: TopicFolder) -> TopicFolder:
    writer = ArchiveWriter(folder, Telemetry)
    writer.write("a-000000000", FIRST, *SPANS[0])
    writer.write("a-000000001", SECOND, *SPANS[1])
    return folder


def content(value: bytes | None) -> object:
    """What a reader of a message sees: its records and its watermark; of another message its bytes."""
    try:
        table, watermark = decode(value or b"", SCHEMA)
    except NewnormalError:
        return value
    return table.to_pylist(), watermark


def read_back(folder: TopicFolder, partition: int, start: int = 0, end: int = 100) -> list[tuple[object, ...]]:
    batches = list(ArchiveReader(folder, Telemetry).messages(partition, start, end))
    assert all(batch.schema == KAFKA for batch in batches)
    return rows_of(pa.Table.from_batches(batches, KAFKA))


def rows_of(rows: pa.Table) -> list[tuple[object, ...]]:
    return [(content(r["value"]), r["topic"], r["partition"], r["offset"], r["arrived"]) for r in rows.to_pylist()]


def test_the_messages_come_back_in_order_with_watermarks_offsets_and_arrival(folder: TopicFolder) -> None:
    written(folder)
    log = rows_of(pa.concat_tables([FIRST, SECOND]))
    for partition in (0, 1):
        assert read_back(folder, partition) == [row for row in log if row[2] == partition]
    assert read_back(folder, 0, 4, 7) == [row for row in log if row[2] == 0 and row[3] in (4, 6)]


def test_polars_and_pandas_read_the_records_of_each_day(folder: TopicFolder) -> None:
    written(folder)
    frame = pl.scan_parquet(folder.records / "**/*.parquet", hive_partitioning=True).collect()
    day = frame.filter(pl.col("day") == pl.date(2026, 11, 22))
    assert sorted(day["time"]) == [MIDNIGHT + 1, MIDNIGHT + 2, MIDNIGHT + 50, MIDNIGHT + 60]
    assert set(day["time"].cast(pl.Datetime("ms")).dt.date()) == {pl.select(pl.date(2026, 11, 22)).item()}
    frame = frame.with_columns(pl.col("entity").cast(pl.String))
    assert all(entity == f"m-{time % 7}" for entity, time in frame.select("entity", "time").iter_rows())
    known = frame.filter(pl.col("time") == MIDNIGHT - 3).row(0, named=True)
    assert (known["partition"], known["offset"], known["row"], known["arrived"]) == (0, 4, 1, MIDNIGHT + 4)
    assert known["watermark"] == MIDNIGHT - 7
    assert sorted(pd.read_parquet(folder.records)["time"]) == sorted(frame["time"])


@pytest.mark.parametrize("dies_at", range(6))
def test_a_write_that_dies_at_any_file_is_completed_by_its_repetition(
    folder: TopicFolder, dies_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = 0

    def place(made: Path, final: Path) -> None:
        nonlocal placed
        placed += 1
        if placed == dies_at + 1:
            raise KeyboardInterrupt
        layout.place(made, final)

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.jobs.archive.files.place", place)
        try:
            written(folder)
        except KeyboardInterrupt:
            before = ArchiveReader(folder, Telemetry)
            assert before.end in ({}, SPANS[0][1]), "a write that is not complete is not read"
    again = kafka(*((r["partition"], r["offset"], r["value"]) for r in [*FIRST.to_pylist(), *SECOND.to_pylist()]))
    ArchiveWriter(folder, Telemetry).write("b-000000000", again, SPANS[0][0], SPANS[1][1])  # a new checkpoint
    written(folder)
    log = rows_of(again)
    for partition in (0, 1):
        assert read_back(folder, partition) == [row for row in log if row[2] == partition]
    times = [row["time"] for row in pl.read_parquet(folder.records / "**/*.parquet").iter_rows(named=True)]
    assert len(times) == len(set(times)) == 9


def test_micro_batches_of_any_size_advance_all_partitions_and_lose_no_message(folder: TopicFolder) -> None:
    written(folder)
    reader = ArchiveReader(folder, Telemetry)
    assert (reader.start, reader.end) == (SPANS[0][0], SPANS[1][1])
    for most in (1, 2, 3, 5, 100):
        places, seen = reader.start, 0
        while places != reader.end:
            ahead = reader.ahead(places, most)
            assert ahead != places
            batch = [row for p in (0, 1) for row in read_back(folder, p, places.get(p, 0), ahead[p])]
            assert len(batch) <= max(most, 2)
            places, seen = ahead, seen + len(batch)
        assert seen == FIRST.num_rows + SECOND.num_rows


def test_the_archive_begins_behind_what_is_missing_and_says_where_an_instant_is(folder: TopicFolder) -> None:
    writer = ArchiveWriter(folder, Telemetry)
    writer.write("a-000000000", FIRST, *SPANS[0])
    writer.write("a-000000001", SECOND, {0: 8, 1: 14}, SPANS[1][1])
    assert ArchiveReader(folder, Telemetry).since(MIDNIGHT + 5) == {0: 6, 1: 9}
    assert ArchiveReader(folder, Telemetry).since(MIDNIGHT + 12) == {0: 9, 1: 12}, "what comes after 8 is not archived"
    writer.write("a-000000002", kafka((0, 40, message(MIDNIGHT))), {0: 40, 1: 16}, {0: 41, 1: 16})
    reader = ArchiveReader(folder, Telemetry)
    assert (reader.start, reader.end) == ({0: 40, 1: 9}, {0: 41, 1: 16})
    assert (reader.reach(0, 4), reader.reach(0, 9), reader.reach(0, 40)) == (9, 9, 41)
    assert (reader.missing(0, 4, 9), reader.missing(0, 4, 50)) == (0, 31 + 9)
    assert reader.since(MIDNIGHT + 12)[0] == 9, "a lost message may have arrived then, so the gap is not skipped"
    assert reader.since(MIDNIGHT + 5)[0] == 6


def offsets_of(folder: TopicFolder, partition: int) -> list[int]:
    batches = ArchiveReader(folder, Telemetry).messages(partition, 0, 1000)
    return [offset for batch in batches for offset in batch["offset"].to_pylist()]


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_new_checkpoints_with_other_micro_batches_leave_nothing_out_and_double_nothing(data: st.DataObject) -> None:
    """A lost checkpoint reads from 0 again, a restored one from its savepoint; their micro-batches end elsewhere."""
    log = {p: [(p, offset, message(MIDNIGHT + offset)) for offset in range(30)] for p in (0, 1)}
    with TemporaryDirectory() as root:
        folder, places = TopicFolder(Path(root), "telemetry"), {0: 0, 1: 0}
        reached = dict(places)
        for checkpoint in range(data.draw(st.integers(1, 3))):
            writer = ArchiveWriter(folder, Telemetry)
            places = {p: data.draw(st.integers(0, reached[p])) for p in places}
            for batch in range(data.draw(st.integers(1, 4))):
                end = {p: data.draw(st.integers(offset, 30)) for p, offset in places.items()}
                rows = kafka(*(row for p in places for row in log[p][places[p] : end[p]]))
                writer.write(f"{checkpoint}-{batch:09d}", rows, places, end)
                places, reached = end, {p: max(end[p], reached[p]) for p in end}
        reader = ArchiveReader(folder, Telemetry)
        archived = {p: list(range(reached[p])) for p in reached}
        assert {p: offsets_of(folder, p) for p in reached} == archived
        assert {p: reader.start.get(p, 0) for p in reached} == {0: 0, 1: 0}
        assert {p: reader.end.get(p, 0) for p in reached} == reached


def test_an_archive_of_release_0_1_whose_write_ended_before_its_start_is_whole(folder: TopicFolder) -> None:
    """There a write told {0: 8} to {0: 5} if the archive had all of its messages of partition 0 already."""
    written(folder)
    third = kafka((1, 17, message(MIDNIGHT)))
    ArchiveWriter(folder, Telemetry).write("b-000000000", third, {0: 3, 1: 9}, {0: 5, 1: 18})
    file = folder.listed("b-000000000")
    told = layout.Write("b-000000000", {0: 9, 1: 16}, {0: 5, 1: 18}, 1, ("2026-11-22",))
    pq.write_table(pq.read_table(file, partitioning=None).replace_schema_metadata(told.metadata()), file)
    ArchiveWriter(folder, Telemetry).write(
        "b-000000001", kafka((0, 9, message(MIDNIGHT))), {0: 5, 1: 18}, {0: 10, 1: 18}
    )
    reader = ArchiveReader(folder, Telemetry)
    assert (reader.start, reader.end) == ({0: 3, 1: 9}, {0: 10, 1: 18})
    assert (offsets_of(folder, 0), offsets_of(folder, 1)) == ([3, 4, 6, 8, 9], [9, 10, 11, 12, 14, 17])


def test_a_job_is_refused_if_what_it_reads_next_is_neither_in_the_archive_nor_in_kafka(folder: TopicFolder) -> None:
    """Offsets 50 to 99 were lost from the archive; Kafka has those from 180 on, which the archive has, too."""
    writer = ArchiveWriter(folder, Telemetry)
    for n in range(4):
        rows = kafka(*((0, offset, message(MIDNIGHT + offset)) for offset in range(50 * n, 50 * n + 50)))
        writer.write(f"a-{n:09d}", rows, {0: 50 * n}, {0: 50 * n + 50})

    def ends(place: int) -> int:
        archives = {"telemetry": ArchiveReader(folder, Telemetry)}
        return archive_ends(archives, {"telemetry": {"0": place}}, {("telemetry", 0): 180})["telemetry"]["0"]

    assert ends(10) == 200
    folder.listed("a-000000001").unlink()
    since = ArchiveReader(folder, Telemetry).since
    assert (since(MIDNIGHT + 10), since(MIDNIGHT + 70), since(MIDNIGHT + 100)) == ({0: 10}, {0: 50}, {0: 50})
    assert since(MIDNIGHT + 101) == {0: 101}
    for place, lost in ((10, 50), (50, 50), (99, 1)):
        with pytest.raises(NewnormalError, match=f"telemetry/0: {lost}") as raised:
            ends(place)
        assert raised.value.code == "ARCHIVE_GAP"
    assert ends(100) == 200


def test_records_that_are_missing_are_told_but_a_day_that_was_deleted_is_left_out(folder: TopicFolder) -> None:
    written(folder)
    lost = folder.part("2026-11-21", "a-000000000")
    kept = lost.read_bytes()
    lost.unlink()
    told = [row[0] for row in read_back(folder, 0, 3, 7)]
    assert told[0] == ([], NEVER)
    assert [record["time"] for record in told[1][0]] == [MIDNIGHT + 2, MIDNIGHT + 1]  # type: ignore[index]
    lost.write_bytes(kept[: len(kept) // 2])
    with pytest.raises(NewnormalError, match="ARCHIVE_BROKEN"):
        read_back(folder, 0, 3, 7)
