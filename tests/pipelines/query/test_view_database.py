"""The view's database: what a reader sees while another writes, and the order of scores."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.query.view.database import Database
from pipelines.query.view.keys import descending
from pipelines.query.view.windows import Ring, last_windows, newest


def test_a_reader_sees_each_write_whole_and_in_order_also_when_files_of_the_writer_change(tmp_path: Path) -> None:
    writer = Database(tmp_path / "data")
    writer.write([(b"a", b"0"), (b"b", b"0")])
    reader = Database(tmp_path / "data", tmp_path / "reader")
    filling = [
        (b"x%d" % n, bytes(1_000)) for n in range(2_000)
    ]  # 2 MB, so that the writer fills memory and makes files
    seen = [0]
    for n in range(1, 75):
        writer.write([(b"a", b"%d" % n), *filling, (b"b", b"%d" % n)], [b"c"])
        if n % 3 == 0:
            reader.catch_up()
        a, b = reader.get_many([b"a", b"b"])
        assert a == b
        seen.append(int(a or b""))
    assert seen == [n - n % 3 for n in range(75)]
    writer.close()
    reader.catch_up()
    assert dict(reader.scan(b"a")) == {b"a": b"74"}
    reader.close()


def test_a_reader_whose_file_the_writer_has_just_removed_goes_on_with_what_it_saw(tmp_path: Path) -> None:
    """RocksDB says so by an error, which must end no process of the view."""
    writer = Database(tmp_path / "data")
    writer.write([(b"a", b"0")])
    reader = Database(tmp_path / "data", tmp_path / "reader")

    class Removed:
        def try_catch_up_with_primary(self) -> None:
            raise Exception("IO error: No such file or directory: While open a file for random read: 000012.sst")

    reader._db, whole = Removed(), reader._db
    reader.catch_up()
    reader._db = whole
    assert reader.get(b"a") == b"0"


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    writer = Database(tmp_path)
    with pytest.raises(NewnormalError) as refused:
        Database(tmp_path)
    assert refused.value.code == "VIEW_UNUSABLE"
    writer.close()
    Database(tmp_path).close()


@given(st.lists(st.floats(0, 100), min_size=2))
def test_keys_of_scores_are_in_descending_order(scores: list[float]) -> None:
    assert sorted(scores, key=descending) == sorted(scores, reverse=True)


def test_a_verdict_that_is_written_again_replaces_neither_a_newer_window_nor_a_higher_revision(tmp_path: Path) -> None:
    """The ring has 100 places: the windows 3 and 103 share one."""
    mine = load(**{"view.windows": 100, "window.size": "10s", "window.allowed_lateness": "0s"})
    ring, database = Ring(mine), Database(tmp_path)
    assert ring.places == 100

    def verdict(window: int, revision: int, kind: str) -> tuple[bytes, bytes]:
        end = (window + 1) * 10_000
        told = {"host.name": "a", "metric": "cpu", "window_start": end - 10_000, "@timestamp": end, "record_score": 1.0}
        return ring.verdict(orjson.dumps(told | {"kind": kind, "revision": revision}))

    def shown() -> list[tuple[int, str]]:
        return [(each["window_end"] // 10_000 - 1, each["kind"]) for each in last_windows(database, "a", "cpu", 9)]

    first = [verdict(3, 0, "normal"), verdict(103, 1, "anomaly"), verdict(104, 0, "normal"), verdict(103, 0, "normal")]
    database.write(newest(first, database).items())
    assert shown() == [(103, "anomaly"), (104, "normal")]
    again = [verdict(3, 5, "normal"), verdict(103, 0, "normal"), verdict(104, 0, "recovered")]
    database.write(newest(again, database).items())
    assert shown() == [(103, "anomaly"), (104, "recovered")]
    database.write(newest([verdict(103, 2, "new_normal")], database).items())
    assert shown() == [(103, "new_normal"), (104, "recovered")]
    database.close()
