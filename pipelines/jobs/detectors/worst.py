"""The worst window of each incident; the kind of an incident is announced as a revision of the verdict on that window.

The window that decides the kind may be ordinary itself; its own verdict says only that the incident is open. So the
detector keeps, for each open incident, the verdict on the worst window so far.
"""

from __future__ import annotations

import polars as pl

from pipelines.contracts.records.novelty import QUIET_KINDS
from pipelines.jobs.detectors.correction_journal import IDENTITY

KEY = ("entity", "metric", "onset")
"""The columns that identify an incident."""


def unusual(threshold: float) -> pl.Expr:
    """An expression: true if a window is unusual by itself (value outside its band, or score at the threshold)."""
    outside = (pl.col("actual") > pl.col("upper")) | (pl.col("actual") < pl.col("lower"))
    return outside.fill_null(False) | (pl.col("record_score") >= threshold)


def revisions(decided: pl.DataFrame, inside: pl.DataFrame, evident: pl.Expr) -> pl.DataFrame:
    """Revises the verdict on the worst window of each incident whose kind was decided.

    Only windows that are unusual by themselves and end no later than the deciding window are candidates; an incident
    without such a window gets no revision.

    Args:
        decided: A row per decided incident: `KEY`, ``turned`` (the kind) and ``window_end`` (of the deciding window);
            optionally ``context``, the numbers that the explanation of a change needs.
        inside: Verdicts on windows of incidents; columns of `Novelty`, and ``onset``.
        evident: An expression that is true if a window is unusual by itself, as from `unusual`.

    Returns:
        Verdicts with revision 1 and the columns of ``inside``.

    >>> row = {"entity": "a", "metric": "m", "onset": 0, "kind": "normal", "lower": 1.0, "upper": 3.0, "revision": 0}
    >>> row |= {"since": None, "incident_state": None, "decided": None}
    >>> numbers = [(0, 2.9, 10.0), (1, 3.1, 40.0), (2, 2.0, 1.0), (3, 9.0, 45.0)]
    >>> rows = [row | {"window_start": n, "window_end": n + 1, "actual": a, "record_score": s} for n, a, s in numbers]
    >>> later = pl.DataFrame([{"entity": "a", "metric": "m", "onset": 0, "turned": "anomaly", "window_end": 3}])
    >>> revised = revisions(later, pl.DataFrame(rows), unusual(50.0))
    >>> revised.select("window_start", "kind", "since", "incident_state", "decided", "revision").rows()
    [(1, 'anomaly', 0, 'open', 3, 1)]
    """
    turned = decided.select(*KEY, pl.col("^context$").name.prefix("_"), _turned="turned", _decided="window_end")
    revised = inside.filter(evident).join(turned, on=KEY, how="inner", maintain_order="left")
    revised = worst(revised.filter(pl.col("window_end") <= pl.col("_decided")), evident, "_decided")
    if "_context" in revised.columns:
        change = pl.col("_turned") == "state_change"
        revised = revised.with_columns(context=pl.when(change).then("_context").otherwise("context"))
    return revised.with_columns(
        kind="_turned", since="onset", incident_state=pl.lit("open"), decided="_decided", revision=pl.lit(1, pl.Int64)
    ).select(inside.columns)


def worst(inside: pl.DataFrame, evident: pl.Expr, *by: str) -> pl.DataFrame:
    """The worst verdict of each incident: verdicts unusual by themselves come first, then high scores, then early ones.

    Args:
        inside: Verdicts on windows of incidents, with the columns of `KEY`.
        evident: An expression that is true if a window is unusual by itself.
        by: Further columns that identify an incident.
    """
    ranked = inside.sort(evident, "record_score", "window_start", descending=[True, True, False])
    return ranked.unique([*KEY, *by], keep="first", maintain_order=True)


def last_revisions(verdicts: pl.DataFrame) -> pl.DataFrame:
    """The verdicts without those that a later verdict among them revises."""
    revised = pl.col("revision") > 0
    again = verdicts.filter(revised) if verdicts.height else verdicts
    if again.is_empty():
        return verdicts
    again = again.unique(IDENTITY, keep="last", maintain_order=True)
    first = verdicts.filter(~revised).with_columns(_left=pl.int_range(pl.len(), 0, -1).over(IDENTITY))
    replaced = again.select(*IDENTITY, _left=pl.lit(1, pl.Int64))  # of several verdicts on one window the last
    first = first.join(replaced, on=[*IDENTITY, "_left"], how="anti", maintain_order="left").drop("_left")
    return pl.concat([first, again])


def reported() -> pl.Expr:
    """An expression: true for verdicts that ``detector.emit = novel`` writes, which are news or end an incident."""
    return ~pl.col("kind").is_in(QUIET_KINDS) | (pl.col("incident_state") == "closed").fill_null(False)
