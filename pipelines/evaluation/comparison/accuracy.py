"""Compares two versions with labels and a ground truth: precision, recall, delay and false alarms of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import polars as pl

from pipelines.evaluation.bootstrap import Interval, paired
from pipelines.evaluation.comparison.common import CommonTimes
from pipelines.evaluation.judge import AlertLevel, JudgedTimes, judge_news
from pipelines.evaluation.truth import Span

_MONTH_DAYS = 30


@dataclass(frozen=True)
class Accuracy:
    """How well one version agrees with the labelled spans.

    Attributes:
        spans: Number of labelled spans in which something was wrong.
        recall: Share of them in which the version raised an alarm; ``None`` without spans.
        precision: Share of its alarms that a span explains; ``None`` without alarms.
        delay: Median number of windows from the start of a span to its first alarm; ``None`` if none was found.
        alarms: Number of alarms, without verdicts on machines as a whole.
        false_alarms: Number of alarms that no span explains, for each series and month of 30 days; ``None`` if no time
            was judged.
        refuted: Number of alarms that operators called false.
    """

    spans: int
    recall: float | None
    precision: float | None
    delay: float | None
    alarms: int
    false_alarms: float | None
    refuted: int

    @classmethod
    def of(cls, level: AlertLevel) -> Accuracy:
        """The figures of a result of `judge_news`."""
        delays = [delay for delay in level.delays if delay is not None]
        months = level.series_days / _MONTH_DAYS
        return cls(
            spans=len(level.delays),
            recall=len(delays) / len(level.delays) if level.delays else None,
            precision=1 - level.false_alarms / level.alerts if level.alerts else None,
            delay=float(median(delays)) if delays else None,
            alarms=level.alerts,
            false_alarms=level.false_alarms / months if months else None,
            refuted=level.refuted,
        )


def accuracy(
    first: pl.DataFrame, second: pl.DataFrame, spans: Sequence[Span], times: CommonTimes
) -> tuple[Accuracy, Accuracy, Interval | None]:
    """The accuracy of two versions, and how much the recall of the second is higher, with its 95 % interval.

    Args:
        first: Verdicts of the first version, on the times that both have judged.
        second: Those of the second one.
        spans: The labelled spans; those outside of the compared times are left out.
        times: The compared times. If neither version stores quiet windows, they are those of all machines, so that a
            machine on which both have stored nothing counts as one without an alarm.

    Returns:
        Both accuracies; and the difference of the recalls, ``None`` if the versions have too few spans in common.
    """
    elsewhere = (times.start, times.end) if all(times.sparse) and times.start and times.end else None
    judged = times.compared.rename({"from_": "first", "to": "last"})
    levels = [judge_news(verdicts, spans, JudgedTimes(judged, elsewhere)) for verdicts in (first, second)]
    found = [np.array([delay is not None for delay in level.delays], float) for level in levels]
    comparable = len(found[0]) == len(found[1]) > 1
    return Accuracy.of(levels[0]), Accuracy.of(levels[1]), paired(found[1], found[0]) if comparable else None
