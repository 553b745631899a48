"""JSON of record types with flags, lists, maps and records in them: own jobs may read any."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from pydantic import create_model

from engine import Count, Instant, Record, Stream, Tumbling
from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import ROW, Messages
from engine.spec.errors import NewnormalError
from engine.testing import TestStream, run

T0 = 1_700_000_000_000


class Place(Record):
    """Where something was."""

    room: int


class Seen(Record):
    """A record with a field of each kind."""

    time: Instant
    who: str
    well: bool
    tags: list[str] | None = None
    levels: dict[str, float] | None = None
    place: Place | None = None


def test_each_kind_of_field_is_read_and_a_wrong_one_spoils_only_its_own_message() -> None:
    whole = b'{"time":"2025-01-01T00:00:00Z","who":"a","well":true,"tags":["x"],"levels":{"k":1.5},"place":{"room":3}}'
    values = [whole, b'{"time":5,"who":"b","well":1}', b'{"time":6,"who":"c","well":false}', b"none", None]
    none = np.zeros(len(values), np.int64)
    decoded = JsonDecoder(Seen).decode(Messages("t", 0, pa.array(values, pa.binary()), none, none))
    first, second = decoded.records.to_pylist()
    assert (first["time"], first["well"], first["tags"], first["place"]) == (
        1_735_689_600_000,
        True,
        ["x"],
        {"room": 3},
    )
    assert dict(first["levels"]) == {"k": 1.5}
    assert (second["who"], second["tags"], second["levels"], second["place"]) == ("c", None, None, None)
    assert decoded.records[ROW].to_pylist() == [0, 2]
    refused = {row: code for row, code, _ in decoded.refused}
    assert refused == {1: "FIELD_INVALID", 3: "JSON_MALFORMED", 4: "JSON_MALFORMED"}


def test_a_job_computes_with_flags_and_lists() -> None:
    seen = Stream.read_columnar("seen", Seen).filter("well").flat_map("tags").key_by("tags")
    job = seen.window(Tumbling("10s")).aggregate(n=Count()).write("tagged")
    row = {"time": T0, "who": "a", "well": True, "tags": ["x", "y"]}
    stream = (
        TestStream(T0, topics=("seen",)).add(row, row | {"well": False}, row | {"tags": ["x"]}).advance_watermark("20s")
    )
    for runner in ("operator", "reference"):
        rows = run(job, stream, on=runner).rows
        assert sorted((r["tags"], r["n"]) for r in rows) == [("x", 2), ("y", 1)], runner


class Numbered(Record):
    """A record type whose messages are read by the column."""

    time: Instant
    who: str
    number: int


class NumberedAndTagged(Numbered):
    """A record type whose messages are read one by one."""

    tags: list[int] | None = None
    by_name: dict[str, int] | None = None


WHOLE = {
    "9007199254740993": 2**53 + 1,  # the first integer that a float cannot hold
    "-9007199254740993": -(2**53) - 1,
    "1890123456789012345": 1_890_123_456_789_012_345,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
    "1e18": 10**18,
    "9007199254740993.0": 2**53 + 1,
    "7.0": 7,
}
"""Numbers in JSON, and what they are by its grammar (RFC 8259) in exact arithmetic."""
BEYOND = (
    "9223372036854775808", "-9223372036854775809", "18446744073709551615", "1e30", "1e300", "1" + "0" * 26, "9.3e18"
)  # fmt: skip


@pytest.mark.parametrize("record", [Numbered, NumberedAndTagged])
def test_a_whole_number_of_64_bits_is_exact_and_a_larger_one_spoils_only_its_own_message(record: type[Record]) -> None:
    texts = [*WHOLE, *BEYOND, "1.5", "1e400", "true", '"5"']
    values = [b'{"time":%d,"who":"a","number":%s}' % (T0, text.encode()) for text in texts]
    for messages in (values, [value for value in values for _ in range(100)]):  # the second is split into pieces
        none = np.zeros(len(messages), np.int64)
        decoded = JsonDecoder(record).decode(Messages("t", 0, pa.array(messages, pa.binary()), none, none))
        times = len(messages) // len(values)
        assert decoded.records["number"].to_pylist() == [n for n in WHOLE.values() for _ in range(times)]
        assert len(decoded.refused) == (len(texts) - len(WHOLE)) * times
        assert {code for _, code, _ in decoded.refused} == {"FIELD_INVALID", "JSON_MALFORMED"}


@pytest.mark.parametrize("text", WHOLE)
def test_a_column_of_large_whole_numbers_is_exact(text: str) -> None:
    messages = [b'{"time":%d,"who":"a","number":%s}' % (T0, text.encode())] * 100
    none = np.zeros(100, np.int64)
    decoded = JsonDecoder(Numbered).decode(Messages("t", 0, pa.array(messages, pa.binary()), none, none))
    assert decoded.records["number"].to_pylist() == [WHOLE[text]] * 100


def test_a_number_beyond_64_bits_within_a_list_or_a_map_is_a_dead_letter() -> None:
    bad = (b'"tags":[1,9223372036854775808]', b'"by_name":{"a":18446744073709551615}')
    values = [b'{"time":5,"who":"a","number":1,"tags":[9223372036854775807]}']
    values += [b'{"time":5,"who":"a","number":1,%s}' % field for field in bad]
    none = np.zeros(3, np.int64)
    decoded = JsonDecoder(NumberedAndTagged).decode(Messages("t", 0, pa.array(values, pa.binary()), none, none))
    assert decoded.records["tags"].to_pylist() == [[2**63 - 1]]
    assert [(row, code) for row, code, _ in decoded.refused] == [(1, "FIELD_INVALID"), (2, "FIELD_INVALID")]


@pytest.mark.parametrize("kind", [int | str, Literal[1, 2], tuple[int, str], list[int | str]])
def test_a_field_whose_values_no_column_can_hold_is_refused_when_the_job_is_built(kind: Any) -> None:
    with pytest.raises(NewnormalError, match="RECORD_INVALID"):
        create_model("Mixed", __base__=Record, time=(Instant, ...), who=(str, ...), field=(kind, ...)).arrow_schema()


def test_a_default_that_is_not_of_its_type_is_refused_when_the_job_is_built() -> None:
    with pytest.raises(NewnormalError, match="RECORD_INVALID"):
        create_model("TooLarge", __base__=Record, time=(Instant, ...), number=(int, 2**63)).arrow_schema()


@pytest.mark.parametrize("beside", [None, b"{broken"])
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b'{"time":1,"k":"a","k":"b","n":1}', ("a", 1)),
        (b'{"time":1,"k":"a","n":null,"n":2}', ("a", None)),
        (b'{"time":1,"k":"a","n":2,"n":"x"}', ("a", 2)),
        (b'{"time":1,"k":"a","n":3,"\\u006e":4}', ("a", 3)),
    ],
)
def test_of_a_field_that_stands_twice_the_first_counts_whatever_comes_with_the_message(
    message: bytes, expected: tuple[str, int | None], beside: bytes | None
) -> None:
    """The boundary: a bad message beside it has the good ones read one by one."""

    class Twice(Record):
        time: Instant
        k: str
        n: int | None = None

    messages = [message, *([beside] if beside else [])]
    none = np.zeros(len(messages), np.int64)
    decoded = JsonDecoder(Twice).decode(Messages("t", 0, pa.array(messages, pa.binary()), none, none))
    assert [(row["k"], row["n"]) for row in decoded.records.to_pylist()] == [expected]
