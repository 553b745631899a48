"""The verdicts on the rows of one frame."""

from __future__ import annotations

import numpy as np
import polars as pl

from models.evidence.repeats import NEVER
from models.numbers.arrays import Array, Ints
from models.series.course import Course
from models.verdicts import Kind, SeriesVerdicts
from pipelines.contracts.records.novelty import QUIET_KINDS
from pipelines.jobs.detectors.beliefs import COURSES, KINDS
from pipelines.jobs.detectors.metrics.context import Contexts
from pipelines.jobs.detectors.metrics.verdict_frames import (
    CHANNELS,
    IN_BRIEF,
    LATER,
    NUMBERS,
    SCHEMA,
    nulls,
)
from pipelines.jobs.detectors.rules import Effects


class RowVerdicts:
    """The columns of verdicts on n rows; all arrays have shape (n,).

    Args:
        verdicts: The verdicts of the models.
        onset: See below.
        metrics: For each row how many metrics of its machine were judged at the same time.
        ruled: The effects of the rules on the rows, if any. No incident is decided where a rule forbids learning.

    Attributes:
        numbers: The columns of numbers, and the evidence of each channel in nats, by name.
        codes: Kind of each verdict, as code of `Kind`.
        turned: The decided kind of the incident that began at ``since``, as code of `Kind`; -1 if none was decided.
        onset: Onset of the incident that is open after the row, announced or not, epoch milliseconds; -1 if none is.
    """

    def __init__(self, verdicts: SeriesVerdicts, onset: Ints, metrics: Ints, ruled: Effects | None) -> None:
        self.numbers = {name: getattr(verdicts, name) for name in NUMBERS if name != "actual"} | verdicts.evidence
        self.numbers["absence"] = np.zeros(len(onset))
        self.numbers["state_score"] = verdicts.state_score.copy()
        self.turned = np.where(ruled.skip_learning, -1, verdicts.turned) if ruled else verdicts.turned
        self.onset = onset
        self.codes, self._since, self._incident = (
            column.copy() for column in (verdicts.kind, verdicts.since, verdicts.incident)
        )
        hour = np.where(verdicts.context["days"] == 1, verdicts.expected["hour"], np.nan)
        self._weights, self._expected = verdicts.experts, verdicts.expected | {"hour": hour}
        self._contexts = Contexts(verdicts, metrics)

    def recover(self, rows: Ints, since: Ints) -> None:
        """Turns ordinary verdicts that end an absence into recoveries.

        Args:
            rows: Rows with a value.
            since: For each of them the start of the absence that it ends, epoch milliseconds; -1 if it ends none.
        """
        back = (since != NEVER) & (self.codes[rows] == Kind.NORMAL.code)
        self.codes[rows[back]], self._since[rows[back]] = Kind.RECOVERED.code, since[back]
        self._incident[rows[back]] = Course.CLOSED.code
        self.numbers["state_score"][rows[back]] = 0.0
        self._contexts.absent(rows[back])

    def frame(self, windows: pl.DataFrame) -> pl.DataFrame:
        """The verdicts on the rows ``windows`` as a frame, with the columns of `SCHEMA`."""
        kinds = KINDS.gather(self.codes)
        news = pl.Series(self.onset != NEVER) | ~kinds.is_in(QUIET_KINDS)
        verdicts = windows.select("entity", "metric", "window_start", "window_end", metric_kind="kind")
        return verdicts.with_columns(
            kind=kinds,
            actual=windows["value"],
            since=pl.Series(self._since),
            incident_state=COURSES.gather(self._incident),
            evidence=pl.DataFrame({name: self.numbers[name] for name in CHANNELS}).to_struct(),
            experts=_of_experts(news, self._weights, self._weights),
            expected=_of_experts(news, self._expected, self._weights),
            context=self._contexts.column(windows.height),
            **nulls("decided", "influencers", *IN_BRIEF, *LATER),
            revision=pl.lit(0, pl.Int64),
            **{name: pl.Series(self.numbers[name]) for name in NUMBERS if name != "actual"},
        ).select(*SCHEMA)


def _of_experts(news: pl.Series, columns: dict[str, Array], weights: dict[str, Array]) -> pl.Series:
    """A column of structs with a field per expert.

    The struct is null where a verdict is no news; a field is null where its expert has no weight.
    """
    fields = [pl.when(pl.Series(weights[name] > 0)).then(pl.col(name).fill_nan(None)).alias(name) for name in columns]
    return pl.DataFrame(columns).select(pl.when(news).then(pl.struct(fields))).to_series()
