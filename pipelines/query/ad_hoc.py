"""Runs queries: once over the records that topics hold now, or live, with a result for each event-time window."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from engine.runtime.reading import read
from engine.spec.decoder import Messages
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from engine.spec.source import Source
from engine.watermarks import WatermarkTracker
from pipelines.query.windowed_sql import END, Query, Spec, placeholder, windowed

_GROWS = re.compile(r"\bsum\s*\(|\w\s*\*\s*[\w(]|\)\s*\*", re.IGNORECASE)
"""Queries with sums or products, which may be larger than what they are made of."""


def evaluate(query: Query, tables: Mapping[str, pl.DataFrame], only: int | None = None) -> pl.DataFrame:
    """Computes the result of a query.

    Args:
        query: The query, as from `parse`.
        tables: The rows of the topics that it reads, by topic name.
        only: End of the only window that the query is evaluated for, epoch milliseconds; ``None``: all windows.

    Raises:
        NewnormalError: ``SQL_INVALID``, with the error of Polars; ``TOPIC_UNKNOWN``; ``RESULT_BEYOND`` if an integer of
            the result does not fit into 64 bits.
    """
    frames = {name: _of_window(table, query, only) for name, table in tables.items()}
    try:
        for number, spec in enumerate(query.specs):
            if spec.table is not None:
                if spec.table not in tables:
                    raise NewnormalError("TOPIC_UNKNOWN", f"there is no topic {spec.table}", "query", ", ".join(tables))
                whole = windowed(tables[spec.table], spec)
                frames[placeholder(number)] = whole if only is None else whole.filter(pl.col(END) == only)
        if not _GROWS.search(query.text):
            return pl.SQLContext(frames).execute(query.text, eager=True)
        wide = {name: frame.with_columns(cs.integer().cast(pl.Int128)) for name, frame in frames.items()}
        return _in_64_bits(pl.SQLContext(wide).execute(query.text, eager=True), query)
    except pl.exceptions.PolarsError as error:
        what = str(error).splitlines()[0]
        raise NewnormalError("SQL_INVALID", what, query.text, f"tables: {', '.join(tables) or 'none'}") from error


def _in_64_bits(result: pl.DataFrame, query: Query) -> pl.DataFrame:
    """The result of a query over integers of 128 bits, which do not wrap, in 64 bits.

    Raises:
        NewnormalError: ``RESULT_BEYOND``.
    """
    for name in result.select(cs.by_dtype(pl.Int128)).columns:
        if result[name].cast(pl.Int64, strict=False).null_count() > result[name].null_count():
            what = f"{name} does not fit into 64 bits"
            accepted = "integers from -2^63 to 2^63 - 1; or broken numbers: sum(cast(x as double))"
            raise NewnormalError("RESULT_BEYOND", what, query.text, accepted, "no result")
    return result.with_columns(cs.by_dtype(pl.Int128).cast(pl.Int64))


def _of_window(table: pl.DataFrame, query: Query, only: int | None) -> pl.DataFrame:
    spec = query.specs[0] if query.specs else None
    if only is None or spec is None or spec.column not in table.columns:
        return table
    time = pl.col(spec.column)
    return table.filter(time >= only - spec.size, time < only)


@dataclass
class LiveTable:
    """The rows of a topic that is read as it grows.

    Attributes:
        source: The topic, its decoder and its watermark strategy.
        rows: The rows that open windows need.
        begun: The first known watermark, epoch milliseconds; windows that begin before it are incomplete.
    """

    source: Source
    rows: list[pl.DataFrame] = field(default_factory=list)
    begun: int = NEVER

    def __post_init__(self) -> None:
        self.tracker = WatermarkTracker(self.source.watermark)

    def take(self, messages: Messages) -> pl.DataFrame:
        """Adds messages of one partition; returns their rows."""
        records, marker, _ = read(self.source, messages, "sql")
        self.tracker.advance([marker])
        self.begun = self.tracker.watermark if self.begun == NEVER else self.begun
        frame = pl.DataFrame(pl.from_arrow(_plain(records)))
        self.rows.append(frame)
        return frame

    def frame(self) -> pl.DataFrame:
        """The rows."""
        if not self.rows:
            return pl.DataFrame(pl.from_arrow(_plain(self.source.columns().empty_table())))
        self.rows = [pl.concat(self.rows)]
        return self.rows[0]

    def forget(self, before: int) -> None:
        """Drops the rows before an instant, epoch milliseconds."""
        self.rows = [self.frame().filter(pl.col(self.source.time) >= before)]


class LiveQuery:
    """Evaluates a query for each of its event-time windows, once the watermark has passed the window's end.

    Rows that arrive when all their windows have been evaluated are ignored and counted as ``late``.

    Args:
        query: The query, which must have a window. With several windows it is evaluated at each end of the first one,
            over the windows of the others that end at the same instant.
        tables: The topics that it reads, by name.
        whole: True if reading started at the oldest record, so that windows before the first watermark are complete.

    Raises:
        NewnormalError: ``SQL_LIVE_NEEDS_WINDOW`` if the query has no window.
    """

    def __init__(self, query: Query, tables: dict[str, LiveTable], whole: bool = False) -> None:
        if not query.specs:
            example = "a window, e.g. FROM tumble(telemetry, time, '10s')"
            raise NewnormalError("SQL_LIVE_NEEDS_WINDOW", "the query has no event-time window", query.text, example)
        self.query, self.tables, self.whole = query, tables, whole
        self.done, self.late = NEVER, 0
        self.longest = max(spec.size for spec in query.specs)

    def take(self, name: str, messages: Messages) -> None:
        """Adds messages of one partition of a table's topic."""
        rows, spec = self.tables[name].take(messages), self.query.specs[0]
        if spec.column in rows.columns:
            time = pl.col(spec.column)
            self.late += rows.filter(time - time % spec.every + spec.size <= self.done).height

    @property
    def watermark(self) -> int:
        """The lowest watermark of the tables, epoch milliseconds."""
        return min(table.tracker.watermark for table in self.tables.values())

    def results(self) -> list[tuple[int, pl.DataFrame]]:
        """(end, result) of each window that the watermark has passed since the last call; without empty results."""
        now, spec = self.watermark, self.query.specs[0]
        if now == NEVER or now <= self.done:
            return []
        frames = {name: table.frame() for name, table in self.tables.items()}
        windows = []
        for end in self._ends(frames, spec, now):
            result = evaluate(self.query, frames, end)
            if result.height:
                windows.append((end, result))
        self.done = now
        for table in self.tables.values():
            table.forget(now - self.longest)
        return windows

    def _ends(self, frames: dict[str, pl.DataFrame], spec: Spec, now: int) -> list[int]:
        begun = NEVER if self.whole else max(table.begun for table in self.tables.values())
        ends: set[int] = set()
        for frame in frames.values():
            if spec.column in frame.columns:
                closed = (pl.col(END) > self.done) & (pl.col(END) <= now) & (pl.col(END) >= begun + self.longest)
                ends |= set(windowed(frame.select(spec.column), spec).filter(closed)[END].unique().to_list())
        return sorted(ends)


def _plain(records: pa.Table) -> pa.Table:
    """Turns dictionary columns into text: Polars would keep all of their values in memory for ever."""
    fields = [f.with_type(pa.string()) if pa.types.is_dictionary(f.type) else f for f in records.schema]
    return records.cast(pa.schema(fields))
