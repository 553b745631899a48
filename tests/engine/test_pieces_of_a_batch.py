"""A batch of several messages: the watermark comes with the last one, so that no reader takes a piece for late."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

from engine.formats import columnar
from engine.runtime import shard
from engine.runtime.shard import ROWS_A_MESSAGE, encode
from engine.spec.duration import NEVER
from engine.spec.output import Output
from tests.engine.panes import Event


def _pieces(rows: int) -> list[tuple[list[int], int]]:
    """Times and watermark of each message that is written of some rows of one key, in order."""
    frame = pl.DataFrame({"key": ["a"] * rows, "time": range(rows), "value": [1.0] * rows})
    output = Output("out", Event, partitions=1)
    written = [value for some in encode(output, frame, 0, 1, 7_000, moved=True) for value in some.values.to_pylist()]
    decoded = [columnar.decode(value, Event.arrow_schema()) for value in written]
    return [(table["time"].to_pylist(), watermark) for table, watermark in decoded]


@pytest.mark.parametrize(("rows", "sizes"), [(0, [0]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])])
def test_the_watermark_of_a_batch_is_told_with_its_last_piece_only(
    monkeypatch: pytest.MonkeyPatch, rows: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(shard, "ROWS_A_MESSAGE", 3)
    found = _pieces(rows)
    assert [len(times) for times, _ in found] == sizes
    assert [time for times, _ in found for time in times] == list(range(rows))
    assert [watermark for _, watermark in found] == [NEVER] * (len(sizes) - 1) + [7_000]


def test_a_batch_of_more_rows_than_a_message_holds_is_cut_at_that_many() -> None:
    found = _pieces(ROWS_A_MESSAGE + 1)
    assert [(len(times), watermark) for times, watermark in found] == [(ROWS_A_MESSAGE, NEVER), (1, 7_000)]


def test_a_partition_without_rows_is_told_the_watermark_only_when_it_has_moved() -> None:
    output, none = Output("out", Event, partitions=2), pl.DataFrame()
    assert [some.partition for some in encode(output, none, 0, 1, 7_000, moved=True)] == [0, 1]
    assert list(encode(output, none, 0, 1, 7_000, moved=False)) == []
    (first,) = list(encode(output, none, 1, 2, 7_000, moved=True))
    assert first.partition == 1
    table, watermark = columnar.decode(first.values[0].as_py(), Event.arrow_schema())
    assert isinstance(table, pa.Table)
    assert (table.num_rows, watermark) == (0, 7_000)
