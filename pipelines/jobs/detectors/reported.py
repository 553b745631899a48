"""Alerts by rules: keeps since when a rule has reported a series, so that an alert has an onset and a recovery.

So has an anomaly in a window that must not be learned from: the model, which forgets such a window, knows no incident
that could end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import polars as pl

from models.evidence.repeats import NEVER
from models.numbers.arrays import Columns
from pipelines.jobs.detectors.state_table import StateTable

_KEY = ("entity", "metric")
_OPEN = {"entity": pl.String, "metric": pl.String, "_onset": pl.Int64}


def new_column(n: int) -> Columns:
    """The state column for n series or machines: onset of its alert, epoch milliseconds; -1: no rule reports it now."""
    return {"reported": np.full(n, NEVER, np.int64)}


def followed(
    verdicts: pl.DataFrame, tables: Mapping[str | None, StateTable], untaught: Collection[str] = ()
) -> pl.DataFrame:
    """Gives each verdict of an alert the alert's onset; the first ordinary verdict after the alert becomes a recovery.

    Args:
        verdicts: Columns of `Novelty`, with the rules applied, in order of time.
        tables: State tables with the column of `new_column`, which is updated. A table by metric name has a row per
            machine; the table under ``None`` has a row per machine and metric, for all other metrics.
        untaught: Ids of the rules that forbid to learn.
    """
    alerts = pl.DataFrame([row for table, rows in _open(tables) for row in rows], _OPEN, orient="row")
    now = pl.col("reported_by").is_not_null()
    if untaught:
        lasts = (pl.col("kind") == "anomaly") | ((pl.col("incident_state") == "open") & (pl.col("kind") != "absence"))
        kept_from = pl.col("rules").list.eval(pl.element().is_in(list(untaught))).list.any().fill_null(False)
        now |= lasts.fill_null(False) & kept_from
    by_rule = verdicts.select(now).to_series()
    if not alerts.height and not by_rule.any():
        return verdicts
    concerned = pl.concat([alerts.select(_KEY), verdicts.filter(by_rule).select(_KEY)]).unique()
    part = verdicts.with_row_index("_row").join(concerned, on=_KEY, how="semi", maintain_order="left")
    part = part.join(alerts, on=_KEY, how="left", maintain_order="left")
    part = part.with_columns(_now=now)
    part = part.with_columns(_was=pl.col("_now").shift(1).over(_KEY).fill_null(pl.col("_onset").is_not_null()))
    own = pl.when(pl.col("_now") & ~pl.col("_was")).then(pl.coalesce("since", "window_start"))
    began = pl.coalesce(own.forward_fill().over(_KEY), "_onset")
    muted = pl.col("rules").is_not_null() & (pl.col("probability") == 1.0)
    over = (pl.col("kind") == "normal") & pl.col("incident_state").is_null()  # of an open incident the model says it
    ends = ~pl.col("_now") & pl.col("_was") & over & ~muted
    part = part.with_columns(
        kind=pl.when(ends).then(pl.lit("recovered")).otherwise("kind"),
        since=pl.when(pl.col("_now") | ends).then(began).otherwise("since"),
        incident_state=pl.when(pl.col("_now"))
        .then(pl.coalesce("incident_state", pl.lit("open")))
        .when(ends)
        .then(pl.lit("closed"))
        .otherwise("incident_state"),
    )
    last = part.group_by(_KEY).agg(pl.col("since", "_now").last())
    _write(tables, last.with_columns(pl.when("_now").then("since").otherwise(NEVER).alias("since")))
    changed = part.select("_row", _kind="kind", _since="since", _state="incident_state")
    result = verdicts.with_row_index("_row").join(changed, on="_row", how="left", maintain_order="left")
    there = pl.col("_kind").is_not_null()
    return result.with_columns(
        kind=pl.coalesce("_kind", "kind"),
        since=pl.when(there).then("_since").otherwise("since"),
        incident_state=pl.when(there).then("_state").otherwise("incident_state"),
    ).select(verdicts.columns)


def _open(tables: Mapping[str | None, StateTable]) -> list[tuple[StateTable, list[tuple[str, str, int]]]]:
    open_alerts = []
    for metric, table in tables.items():
        column = table.columns["reported"][: len(table)].astype(np.int64)
        rows = np.flatnonzero(column != NEVER)
        onsets = zip(table.names_of(rows), column[rows].tolist(), strict=True)
        open_alerts.append((table, [(key[0], metric or key[1], onset) for key, onset in onsets]))
    return open_alerts


def _write(tables: Mapping[str | None, StateTable], last: pl.DataFrame) -> None:
    for metric, table in tables.items():
        others = [name for name in tables if name is not None]
        mine = ~pl.col("metric").is_in(others) if metric is None else pl.col("metric") == metric
        own = last.filter(mine)
        there, rows = table.has(own), table.find(own)
        table.columns["reported"][rows] = own["since"].to_numpy()[there]
        table.touch(rows)
