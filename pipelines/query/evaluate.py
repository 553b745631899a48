"""Runs queries: over what topics hold now, and live, a window at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa

from engine.runtime.reading import read
from engine.spec.decoder import Messages
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from engine.spec.source import Source
from engine.watermarks import WatermarkTracker
from pipelines.query.windowed_sql import END, Query, Spec, placeholder, windowed


def evaluate(query: Query, tables: Mapping[str, pl.DataFrame], only: int | None = None) -> pl.DataFrame:
    """The result of a query.

    Args:
        query: As `parse` gave it.
        tables: The topics that it reads.
        only: End of the one window of the query whose rows count; without it all do.

    Raises:
        NewnormalError: ``SQL_INVALID`` with what Polars says of it.
    """
    frames = {name: _of_window(table, query, only) for name, table in tables.items()}
    try:
        for number, spec in enumerate(query.specs):
            if spec.table is not None:
                if spec.table not in tables:
                    raise NewnormalError("TOPIC_UNKNOWN", f"there is no topic {spec.table}", "query", ", ".join(tables))
                whole = windowed(tables[spec.table], spec)
                frames[placeholder(number)] = whole if only is None else whole.filter(pl.col(END) == only)
        return pl.SQLContext(frames).execute(query.text, eager=True)
    except pl.exceptions.PolarsError as error:
        what = str(error).splitlines()[0]
        raise NewnormalError("SQL_INVALID", what, query.text, f"tables: {', '.join(tables) or 'none'}") from error


def _of_window(table: pl.DataFrame, query: Query, only: int | None) -> pl.DataFrame:
    spec = query.specs[0] if query.specs else None
    if only is None or spec is None or spec.column not in table.columns:
        return table
    time = pl.col(spec.column)
    return table.filter(time >= only - spec.size, time < only)


@dataclass
class LiveTable:
    """A topic that is read as it grows.

    Attributes:
        source: What its messages are, and how its watermark is told.
        rows: Those of windows that are not over.
        begun: The watermark when it was first known: earlier windows are not whole.
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
        """Drops rows ahead of an instant."""
        self.rows = [self.frame().filter(pl.col(self.source.time) >= before)]


class LiveQuery:
    """A query that is evaluated for each of its event-time windows, once the watermark has passed the window's end.

    Rows whose windows have all been answered are counted as ``late`` and not looked at.

    Args:
        query: With at least one window. With several it is evaluated at each end of the first one, over the windows of
            the others that end at that instant.
        tables: Its topics.
        whole: Windows that began ahead of the first watermark are told too: reading started at the beginning.

    Raises:
        NewnormalError: ``SQL_LIVE_NEEDS_WINDOW``.
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
        """The least of the tables'."""
        return min(table.tracker.watermark for table in self.tables.values())

    def results(self) -> list[tuple[int, pl.DataFrame]]:
        """End and result of each window that the watermark has passed since the last call; those with rows."""
        now, spec = self.watermark, self.query.specs[0]
        if now == NEVER or now <= self.done:
            return []
        frames = {name: table.frame() for name, table in self.tables.items()}
        found = []
        for end in self._ends(frames, spec, now):
            result = evaluate(self.query, frames, end)
            if result.height:
                found.append((end, result))
        self.done = now
        for table in self.tables.values():
            table.forget(now - self.longest)
        return found

    def _ends(self, frames: dict[str, pl.DataFrame], spec: Spec, now: int) -> list[int]:
        begun = NEVER if self.whole else max(table.begun for table in self.tables.values())
        ends: set[int] = set()
        for frame in frames.values():
            if spec.column in frame.columns:
                closed = (pl.col(END) > self.done) & (pl.col(END) <= now) & (pl.col(END) >= begun + self.longest)
                ends |= set(windowed(frame.select(spec.column), spec).filter(closed)[END].unique().to_list())
        return sorted(ends)


def _plain(records: pa.Table) -> pa.Table:
    """Dictionary columns as text: what Polars keeps of them would grow with all values ever seen."""
    fields = [f.with_type(pa.string()) if pa.types.is_dictionary(f.type) else f for f in records.schema]
    return records.cast(pa.schema(fields))
