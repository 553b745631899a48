"""JSON of record types with flags, lists, maps and records in them: own jobs may read any."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine import Count, Instant, Record, Stream, Tumbling
from engine.formats.json_decoder import JsonDecoder
from engine.spec.decoder import ROW, Messages
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
