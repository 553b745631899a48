"""The view's database: what a reader sees while another writes, and the order of scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.spec.errors import NewnormalError
from pipelines.query.view.database import Database
from pipelines.query.view.keys import descending


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
