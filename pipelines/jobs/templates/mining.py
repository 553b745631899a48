"""The operator that mines templates: turns counts of masked lines into counts by template and by severity."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from engine.explain.plan import describe
from engine.spec.grid import Grid
from engine.spec.operator import Operator, Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.build import build
from engine.vectorized.processor import Processor, Results, StateCounts
from pipelines.jobs.templates.miner import Miner

SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "informational", "debug", "unknown")
"""Names of syslog's severities, by code (RFC 5424), and of that of a level which is not known."""

TEMPLATE, SEVERITY = "log.template.", "log.severity."
"""Prefixes of the names of log metrics: counts by template and counts by severity."""

_WINDOW = ("entity", "window_start", "window_end")


@dataclass(frozen=True)
class MineTemplates(Operator):
    """The configuration of the operator that turns windows of masked lines into counts by template and severity.

    The windows come from aligned windows without allowed lateness, so each arrives once and complete. The order of
    mining depends on event time alone: window by window, and within a window by the first time of a line; ties are
    broken by program and text.
    """

    def result_grid(self, grid: Grid) -> Grid:
        return grid


class _Mining(Processor):
    """The logic of `MineTemplates`.

    State: the segment ``templates`` holds the tables of a `Miner`.
    """

    def __init__(self, operator: MineTemplates) -> None:
        pass

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        if not batch.height:
            return Results(pl.DataFrame())
        counts = batch.with_columns(pl.col("entity", "program", "masked").cast(pl.String))
        stored = state.get("templates")
        tables = unpack(stored) if stored else {}
        miner = Miner(tables["templates"], tables["lines"]) if tables else Miner()
        pieces = []
        while counts.height:  # windows without new lines are handled together, a window with a new line alone
            assigned = miner.with_ids(counts)
            ends = counts["window_end"].unique().sort().to_list()
            new = ends[0] if miner.full(assigned) else _first_new(assigned, ends[-1] + 1)
            before = assigned.filter(pl.col("window_end") < new)
            if before.height:
                miner.touch(before)
                pieces.append(_features(before, miner))
            alone = counts.filter(pl.col("window_end") == new)
            if alone.height:
                pieces.append(_features(miner.window(alone, new), miner))
            counts = counts.filter(pl.col("window_end") > new)
        features = pl.concat(pieces)
        state.put("templates", pack({"templates": miner.templates, "lines": miner.lines}))
        return Results(features, held=StateCounts(keys=miner.templates.height))

    def rescale(self, states: Rescaling) -> None:
        """Gives each new shard all templates and lines of its sources: a machine finds those that it has had.

        Where several sources have given one line different templates, the first one counts.
        """
        for _, state, sources in states.shards():
            parts = [unpack(value) for source in sources if (value := source.get("templates"))]
            if parts:
                templates = pl.concat([part["templates"] for part in parts]).unique("id", maintain_order=True)
                lines = pl.concat([part["lines"] for part in parts])
                lines = lines.unique(["program", "masked"], keep="first", maintain_order=True)
                state.put("templates", pack({"templates": templates, "lines": lines}))


def _first_new(lines: pl.DataFrame, none: int) -> int:
    """End of the first window with a line that is not known yet; ``none`` if all lines are known."""
    return min(lines.filter(pl.col("id").is_null())["window_end"].to_list(), default=none)


def _features(lines: pl.DataFrame, miner: Miner) -> pl.DataFrame:
    """The counts of each machine and window: a row for each template, and a row for each severity."""
    first = pl.struct("first", "example")
    every = {
        "count": pl.col("count").sum().cast(pl.Int64),
        "severity": pl.col("severity").min().cast(pl.Int64),
        "example": pl.col("example").min_by(first),
    }
    texts = miner.templates.select("id", template="text").unique("id", keep="last")
    templates = lines.group_by(*_WINDOW, "id").agg(**every).join(texts, on="id", how="left")
    names = pl.DataFrame({"code": range(len(SEVERITIES)), "name": SEVERITIES}, {"code": pl.Int64, "name": pl.String})
    severities = lines.group_by(*_WINDOW, "severity").agg(count=every["count"], example=every["example"])
    severities = severities.with_columns(pl.col("severity").cast(pl.Int64))
    severities = severities.join(names, left_on="severity", right_on="code", how="left")
    columns = [*_WINDOW, "metric", "count", "severity", "template", "example"]
    parts = [
        templates.with_columns(metric=TEMPLATE + pl.col("id")).select(columns),
        severities.with_columns(metric=SEVERITY + pl.col("name"), template=pl.lit(None, pl.String)).select(columns),
    ]
    kind, revision = pl.lit("count"), pl.lit(0, pl.Int64)
    return pl.concat(parts).sort("window_end", "entity", "metric").with_columns(kind=kind, revision=revision)


build.register(MineTemplates, _Mining)


@describe.register
def _describe(operator: MineTemplates) -> list[tuple[str, str]]:
    return [("does", "mines log templates (Drain); counts by template and by severity"), ("keeps", "templates")]
