"""What queries wrote, as tables, and whether two of them wrote the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import polars as pl

from engine.formats import columnar
from engine.kafka.content import values
from engine.kafka.offsets import KafkaOffsets
from engine.spec.record import Record
from pipelines.contracts.records import Features

SERIES = ["entity", "metric"]
STATISTICS = ["count", "mean", "std", "min", "max", "last"]


def settle(bootstrap: str, topic: str, seconds: float = 60.0) -> None:
    """Waits until readers of committed messages see all that a topic holds.

    A commit returns before the broker has marked its messages as committed.
    """
    offsets, deadline = KafkaOffsets(bootstrap, [topic]), time.monotonic() + seconds
    written = offsets.written()
    while any(offsets.ends()[place] < end for place, end in written.items()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"a transaction on {topic} stays open")
        time.sleep(0.05)


def json_rows(bootstrap: str, topic: str) -> pl.DataFrame:
    """The records of a topic of JSON messages."""
    settle(bootstrap, topic)
    return pl.read_ndjson(b"\n".join(values(bootstrap, topic)), infer_schema_length=None)


def columnar_rows(bootstrap: str, topic: str, record: type[Record]) -> pl.DataFrame:
    """The records of a columnar topic."""
    settle(bootstrap, topic)
    schema = record.arrow_schema()
    tables = [columnar.decode(value, schema)[0] for value in values(bootstrap, topic)]
    frames = [pl.DataFrame(pl.from_arrow(table)) for table in tables if table.num_rows]
    return pl.concat(frames).with_columns(pl.col(pl.Categorical).cast(pl.String))


def windows(bootstrap: str, topic: str) -> tuple[pl.DataFrame, int]:
    """The last revision of each window, and how many others there were."""
    rows = columnar_rows(bootstrap, topic, Features).sort("revision")
    last = rows.unique([*SERIES, "window_start", "window_end"], keep="last", maintain_order=True)
    return last, rows.height - last.height


def compare(mine: pl.DataFrame, theirs: pl.DataFrame, by: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """Row by row; numbers are equal to 1e-9."""
    both = mine.join(theirs, on=list(by), how="inner", suffix="_theirs")

    def off(name: str) -> float:
        a, b = pl.col(name), pl.col(f"{name}_theirs")
        return float(both.select(((a - b).abs() / b.abs().clip(lower_bound=1e-9)).max()).item() or 0.0)

    differences = {name: off(name) for name in columns}
    return {
        "equal": mine.height == theirs.height == both.height > 0 and max(differences.values()) < 1e-9,
        "rows": both.height,
        "only_ours": mine.height - both.height,
        "only_theirs": theirs.height - both.height,
        "largest_relative_difference": differences,
    }


def compare_windows(bootstrap: str, ours: str, handwritten: str) -> dict[str, Any]:
    """Ours against the hand-written job's, percentiles too: these are approximations of two kinds."""
    mine, revisions = windows(bootstrap, ours)
    theirs = json_rows(bootstrap, handwritten)
    by = [*SERIES, "window_start"]
    p95 = mine.join(theirs, on=by).select((pl.col("p95") / pl.col("p").list.get(1) - 1).abs().median()).item()
    result = compare(mine, theirs, by, STATISTICS)
    return result | {"revisions": revisions, "p95_relative_difference_median": float(p95)}
