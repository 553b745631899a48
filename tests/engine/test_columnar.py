"""The columnar log: what is broken is refused with a reason and crashes nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.formats import columnar
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Features, Telemetry

SCHEMA = Telemetry.arrow_schema()
ROWS = [{"time": i, "entity": f"h{i % 3}", "metric": "m", "value": i / 7, "kind": "gauge"} for i in range(50)]
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)
VALID = columnar.encode(TABLE, 5)


def attempt(message: bytes) -> None:
    """Decodes; a result must be readable to its last value."""
    try:
        table, watermark = columnar.decode(message, SCHEMA)
    except NewnormalError as error:
        assert error.code in {"COLUMNAR_BROKEN", "COLUMNAR_SCHEMA"}
        return
    assert table.schema.equals(SCHEMA)
    assert len(table.to_pylist()) == table.num_rows
    assert watermark is None or isinstance(watermark, int)


def test_a_message_comes_back_as_it_was() -> None:
    table, watermark = columnar.decode(VALID, SCHEMA)
    assert table.to_pylist() == ROWS
    assert watermark == 5


def test_a_message_may_hold_no_rows_and_tell_a_watermark_or_none() -> None:
    table, watermark = columnar.decode(columnar.encode(SCHEMA.empty_table(), 7), SCHEMA)
    assert (table.num_rows, watermark) == (0, 7)
    assert columnar.decode(columnar.encode(TABLE, NEVER), SCHEMA)[1] == NEVER
    assert columnar.decode(columnar.encode(TABLE), SCHEMA)[1] is None


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=300))
def test_random_bytes_are_refused(message: bytes) -> None:
    with pytest.raises(NewnormalError):
        columnar.decode(message, SCHEMA)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, len(VALID) - 1))
def test_a_truncated_message_crashes_nothing(length: int) -> None:
    attempt(VALID[:length])


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_message_with_wrong_bytes_crashes_nothing(wrong: list[tuple[int, int]]) -> None:
    message = bytearray(VALID)
    for at, byte in wrong:
        message[at] = byte
    attempt(bytes(message))


@pytest.mark.parametrize("mark", [b"", b"soon", b"1e9", b"\xff", b"9" * 5000])
def test_a_watermark_that_is_none_is_refused(mark: bytes) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA.with_metadata({b"watermark": mark})) as writer:
        writer.write_table(TABLE.replace_schema_metadata({b"watermark": mark}))
    with pytest.raises(NewnormalError, match="COLUMNAR_BROKEN"):
        columnar.decode(bytes(sink.getvalue()), SCHEMA)


def test_columns_are_found_by_name() -> None:
    more = TABLE.append_column("new", pa.array([1] * 50)).select(["new", "kind", "value", "metric", "entity", "time"])
    assert columnar.decode(columnar.encode(more), SCHEMA)[0].to_pylist() == ROWS
    fewer = columnar.decode(columnar.encode(TABLE.drop_columns(["kind"])), SCHEMA)[0]
    assert fewer.column("kind").null_count == 50


@pytest.mark.parametrize(
    "table",
    [
        TABLE.drop_columns(["value"]),
        TABLE.set_column(3, "value", pa.array(["x"] * 50)),
        TABLE.set_column(3, "value", pa.array([[1.0]] * 50)),
        TABLE.set_column(3, "value", pa.nulls(50, pa.float64())),
        TABLE.append_column("value", pa.array([1.0] * 50)),
        Features.arrow_schema().empty_table(),
    ],
    ids=["missing", "text", "lists", "nulls", "doubled", "another record"],
)
def test_a_column_that_does_not_fit_is_named(table: pa.Table) -> None:
    with pytest.raises(NewnormalError, match="COLUMNAR_SCHEMA: column"):
        columnar.decode(columnar.encode(table), SCHEMA)
