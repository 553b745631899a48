"""Turns verdicts into episodes, by the column: the last revision of each verdict counts, whatever came first.

Verdicts on logs that are no novelties, but have lines that are new to their machine, are kept beside the episodes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import polars as pl

from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.jobs.incidents.episode import LOGS, MEASURE, MOST_WIDTHS, Episode

SITE = "site"
"""Name of the key column: all novelties of a site have the same key, and are in one shard."""

_IDENTITY = ("entity", "metric", "window_start", "window_end")
_SERIES = (SITE, "entity", "metric", "since")

_WORST: dict[str, pl.DataType | type[pl.DataType]] = {
    "metric_kind": pl.String,
    **dict.fromkeys(("actual", "typical", "lower", "upper", "values", "clock", "metrics"), pl.Float64),
}
"""What is kept of the worst verdict of an episode: the value that it judged, and what was expected."""

_FULL: dict[str, pl.DataType | type[pl.DataType]] = dict.fromkeys(("full_earliest", "full_latest"), pl.Int64)
"""What is kept of the last verdict that told when a series is full."""

ROWS = pl.Schema(
    {
        **dict.fromkeys((SITE, "entity", "metric"), pl.String),
        **dict.fromkeys(("window_start", "window_end"), pl.Int64),
        "kind": pl.String,
        "record_score": pl.Float64,
        "since": pl.Int64,
        **dict.fromkeys(("incident_state", "template", "example"), pl.String),
        **dict.fromkeys(("level", "revision"), pl.Int64),
        **_WORST,
        **_FULL,
    }
)
"""The columns of verdicts that are kept."""

PARTS = pl.Schema(
    {
        **dict.fromkeys((SITE, "entity", "metric"), pl.String),
        **dict.fromkeys(("since", "reported", "until", "closed"), pl.Int64),
        "score": pl.Float64,
        "absent": pl.Boolean,
        **dict.fromkeys(("template", "example"), pl.String),
        **dict.fromkeys(("level", "resumed"), pl.Int64),
        "kind": pl.String,
        "worst": pl.Int64,
        **_WORST,
        **_FULL,
        "foretold": pl.Int64,
    }
)
"""The columns of episodes; `reported` is null if only the end of an episode is known, or for `NEW_LINES`."""

_OF_LOG = ("template", "example", "level")
_OF_WORST = ("kind", "worst", *_WORST)

_OUTSIDE = pl.max_horizontal(pl.col("actual") - pl.col("upper"), pl.col("lower") - pl.col("actual"), 0.0)
_WIDTH = pl.col("upper") - pl.col("lower")
_WIDTHS = pl.min_horizontal(_OUTSIDE / _WIDTH, (pl.col("values") / MEASURE) ** 2, MOST_WIDTHS)
_BEYOND = pl.when(_WIDTH > 0).then(_WIDTHS).otherwise(0.0)
"""`Episode.beyond` as an expression: the worst verdict is that with the largest deviation, so that none hides it."""

NEW_LINES = pl.col("reported").is_null() & pl.col("closed").is_null() & pl.col("template").is_not_null()
"""An expression: true for windows of logs with new lines, which are no episodes."""


_OF_EPISODE = pl.col("reported").is_not_null() | pl.col("closed").is_not_null()


def newest(rows: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    """Adds verdicts; of several on one window the one with the highest revision stays."""
    both = _both(rows, more.select(pl.col(name).cast(kind) for name, kind in ROWS.items()), ROWS)
    both = both.sort("revision", "kind", "record_score", maintain_order=True)
    return both.unique([SITE, *_IDENTITY], keep="last", maintain_order=True)


def parts(rows: pl.DataFrame) -> pl.DataFrame:
    """The episodes, or parts of them, and the new lines, of verdicts; the columns of `PARTS`."""
    alarm = pl.col("kind").is_in(ALARM_KINDS)
    ends = pl.col("kind").is_in(["recovered", "new_normal"]) | (pl.col("incident_state") == "closed").fill_null(False)
    of_template = pl.col("template").is_not_null()
    new_lines = ~ends & of_template & (pl.col("revision") == 0)  # a revision may take back what was said of the log
    foretells = pl.col("kind") == "exhaustion"
    ended = rows.with_columns(since=pl.coalesce("since", "window_start"), worst="window_end").sort(*_IDENTITY)
    worst_first = [each.filter(alarm) for each in (_BEYOND, pl.col("record_score"), pl.col("worst"))]
    grouped = ended.group_by(_SERIES, maintain_order=True).agg(
        reported=pl.col("window_end").filter(alarm).min(),
        until=pl.col("window_end").filter(alarm).max(),
        closed=pl.col("window_end").filter(ends).max(),
        score=pl.col("record_score").filter(alarm).max(),
        absent=(pl.col("kind") == "absence").any(),
        **{name: _first_of(pl.col(name), alarm & of_template, new_lines) for name in _OF_LOG},
        resumed=pl.col("window_start").filter(ends).max(),
        **{
            name: pl.col(name).filter(alarm).sort_by(worst_first, descending=[True, True, False]).first()
            for name in _OF_WORST
        },
        **{name: pl.col(name).filter(foretells).last() for name in _FULL},
        foretold=pl.col("window_end").filter(foretells).last(),
    )
    return grouped.filter(_OF_EPISODE | NEW_LINES).select(pl.col(name).cast(kind) for name, kind in PARTS.items())


def joined(verdicts: pl.DataFrame, more: pl.DataFrame) -> pl.DataFrame:
    """Joins parts of the same episodes."""
    both = _both(verdicts, more, PARTS).sort("reported", "until", nulls_last=True)
    worst_first = [_BEYOND, pl.col("score"), pl.col("worst")]
    worst = pl.col(_OF_WORST).sort_by(worst_first, descending=[True, True, False], nulls_last=True).first()
    grouped = both.group_by(_SERIES, maintain_order=True).agg(
        pl.col("reported").min(),
        pl.col("until", "closed", "score", "resumed").max(),
        pl.col("absent").any(),
        pl.col(_OF_LOG).filter(pl.col("template").is_not_null()).first(),
        worst,
        pl.col(*_FULL, "foretold").sort_by("foretold", nulls_last=False).last(),
    )
    return grouped.select(*PARTS)


def episodes(verdicts: pl.DataFrame) -> list[Episode]:
    """The episodes in a frame with the columns of `PARTS`; those that were never reported are left out.

    An episode without an end ends where the next one of its series begins: detectors may date an onset anew.
    """
    verdicts = verdicts.filter(_OF_EPISODE)
    after = pl.col("since").shift(-1).over(SITE, "entity", "metric")
    closed = pl.coalesce("closed", pl.when(after.is_not_null()).then(pl.max_horizontal(after, "until")))
    reported = (
        verdicts.sort(*_SERIES)
        .with_columns(closed=closed, resumed=pl.coalesce("resumed", "closed", closed))
        .filter(pl.col("reported").is_not_null())
        .drop(SITE)
    )
    return _sending([Episode(**row) for row in reported.to_dicts()])


def _sending(listed: list[Episode]) -> list[Episode]:
    """Ends the silence of machines of which a metric has had a novelty since then.

    No verdict says that such a machine sends again, as its first window after the silence was unusual by itself.
    """
    silent = {e.entity for e in listed if e.silent}
    heard: dict[str, list[int]] = {entity: [] for entity in silent}
    for e in listed:
        if e.entity in silent and not e.absent and e.metric != LOGS:
            heard[e.entity].append(e.since)
    for times in heard.values():
        times.sort()
    ended = []
    for e in listed:
        times = heard[e.entity] if e.silent else []
        place = bisect_right(times, e.since)
        again = times[place] if place < len(times) else None
        earlier = again is not None and (e.resumed is None or again < e.resumed)
        ended.append(replace(e, resumed=again, closed=again) if earlier else e)
    return ended


def new_lines(verdicts: pl.DataFrame) -> dict[str, list[Episode]]:
    """For each machine its windows with new lines, in a frame with the columns of `PARTS`."""
    times = {name: pl.col("since") for name in ("reported", "until", "closed")}
    by_machine: dict[str, list[Episode]] = {}
    for row in verdicts.filter(NEW_LINES).drop(SITE).with_columns(**times, score=0.0).sort("since").to_dicts():
        by_machine.setdefault(row["entity"], []).append(Episode(**row))
    return by_machine


def _first_of(column: pl.Expr, *conditions: pl.Expr) -> pl.Expr:
    return pl.coalesce(column.filter(condition).first() for condition in conditions)


def _both(verdicts: pl.DataFrame, more: pl.DataFrame, columns: pl.Schema) -> pl.DataFrame:
    """Joins two tables; state that was written before a column was there has null in it."""
    return pl.concat([verdicts, more], how="diagonal").select(*columns)
