"""Of what one batch judges twice only the last verdict is written."""

from __future__ import annotations

import polars as pl

from pipelines.jobs.detectors.worst import last_revisions

T0 = 1_700_000_000_000


def _verdicts(*rows: tuple[str, int, str]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, ["entity", "revision", "says"], orient="row")
    return frame.with_columns(metric=pl.lit("cpu"), window_start=pl.lit(T0), window_end=pl.lit(T0 + 10_000))


def test_a_revision_replaces_the_verdict_that_it_revises_and_the_revision_before_it() -> None:
    made = _verdicts(("a", 0, "first"), ("b", 0, "other"), ("a", 1, "second"), ("a", 2, "third"))
    assert last_revisions(made)["says"].to_list() == ["other", "third"]


def test_of_two_values_of_one_window_a_revision_replaces_the_last_one() -> None:
    made = _verdicts(("a", 0, "first value"), ("a", 0, "second value"), ("a", 1, "revised"))
    assert last_revisions(made)["says"].to_list() == ["first value", "revised"]


def test_without_a_revision_all_verdicts_stay() -> None:
    made = _verdicts(("a", 0, "first"), ("b", 0, "other"))
    assert last_revisions(made).equals(made)
