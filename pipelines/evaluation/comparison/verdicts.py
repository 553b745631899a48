"""Reads the final verdicts of a version as columns: of each series and window, the verdict of the highest revision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import orjson
import polars as pl

from engine.formats.heartbeat import HEARTBEAT
from pipelines.contracts.records import Novelty

_FIELDS: dict[str, type[pl.DataType]] = {
    "entity": pl.String,
    "metric": pl.String,
    "window_start": pl.Int64,
    "window_end": pl.Int64,
    "kind": pl.String,
    "record_score": pl.Float64,
    "actual": pl.Float64,
    "typical": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "since": pl.Int64,
    "incident_state": pl.String,
    "message": pl.String,
    "details": pl.String,
    "revision": pl.Int64,
}
SCHEMA = pl.Schema(_FIELDS)
"""The columns of verdicts, named as the fields of `Novelty`; times are in epoch milliseconds."""

SERIES = ("entity", "metric")
WINDOW = (*SERIES, "window_start", "window_end")
"""The columns that identify a verdict, whatever its revision."""

_NAMES = {Novelty.model_fields[name].alias or name: name for name in _FIELDS}
_IN_JSON = {alias: _FIELDS[name] for alias, name in _NAMES.items()}
_REQUIRED = [*WINDOW, "kind", "record_score"]
_AT_ONCE = 100_000
"""Number of messages that are parsed at once: it bounds the memory for their text."""


def final(values: Iterable[bytes]) -> tuple[pl.DataFrame, int]:
    """The final verdicts among messages of `novelties`.

    Args:
        values: The messages, in the order in which they were written.

    Returns:
        A row for each series and window, sorted, with the columns `SCHEMA`; and the number of messages that are no
        verdicts.
    """
    verdicts, unreadable = pl.DataFrame(schema=SCHEMA), 0
    for some in _pieces(value for value in values if value != HEARTBEAT):
        parsed = _parsed(some)
        unreadable += len(some) - parsed.height
        verdicts = _newest(pl.concat([verdicts, parsed]))
    return verdicts.sort(WINDOW), unreadable


def _pieces(values: Iterator[bytes]) -> Iterator[list[bytes]]:
    while some := list(islice(values, _AT_ONCE)):
        yield some


def _newest(verdicts: pl.DataFrame) -> pl.DataFrame:
    """The last of the highest revisions of each verdict."""
    ordered = verdicts.sort("revision", maintain_order=True)
    return ordered.unique(WINDOW, keep="last", maintain_order=True)


def _parsed(values: list[bytes]) -> pl.DataFrame:
    try:
        frame = pl.read_ndjson(b"\n".join(values), schema=_IN_JSON)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        objects = [orjson.dumps(fields) for value in values if (fields := _object(value)) is not None]
        if not objects:
            return pl.DataFrame(schema=SCHEMA)
        frame = pl.read_ndjson(b"\n".join(objects), schema=_IN_JSON, ignore_errors=True)
    frame = frame.rename(_NAMES).select(SCHEMA.names()).with_columns(pl.col("revision").fill_null(0))
    return frame.drop_nulls(_REQUIRED)


def _object(value: bytes) -> dict[str, object] | None:
    """The fields of a message that are verdicts' fields; ``None`` if it is no JSON object."""
    try:
        fields = orjson.loads(value)
    except ValueError:
        return None
    return {name: fields[name] for name in _IN_JSON if name in fields} if isinstance(fields, dict) else None
