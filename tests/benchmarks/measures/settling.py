"""How the detector handles changes of state in single series: noticed, accepted as a new normal, recognised, quiet.

A machine has many metrics, and each is a series with a normal of its own. `kinds.IncidentOutcome` judges the machine as
a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from datagen.groundtruth import GroundTruth
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.evaluation.truth import CALM
from tests.benchmarks.measures.kinds import MONTH, SETTLE

PROMPT = 5
"""The number of windows within which the detector should recognise a regime that it has seen before."""

DAY = 86_400_000


@dataclass(frozen=True)
class Settled:
    """How the detector handled one series of a machine whose state changed.

    Args:
        truth: The change.
        metric: One of the metrics that show the change.
        noticed: True if there was an alert of this metric within `SETTLE` windows of the change.
        accepted: Number of windows from the change to the first new normal of the next 24 hours; -1 if there is none.
        alerts: Number of alerts in these 24 hours.
        quiet: True if there is no news from `SETTLE` windows after the change until the end of the 24 hours.
        again: True if the change leads from a known regime to another known one. A regime is known if it is the first
            of the series, or if it was accepted as a new normal within 24 hours of an earlier change to it.
    """

    truth: GroundTruth
    metric: str
    noticed: bool
    accepted: int
    alerts: int
    quiet: bool
    again: bool


@dataclass(frozen=True)
class Settlings:
    """Figures over all series whose state changed; NaN where there is nothing to count.

    Args:
        series: Number of changed series: one for each change, machine and metric that shows it by the ground truth.
        noticed: Share of the changed series with an alert within `SETTLE` windows; the others moved too little, or were
            missed.
        accepted: Share of the noticed series with a new normal within `SETTLE` windows. A series that is never called a
            new normal counts as missed, even if it is quiet.
        median: Median number of windows until the new normal, for series with one within 24 hours.
        few: Share of the noticed series with at most two alerts in 24 hours.
        quiet: Share of the noticed series without news from `SETTLE` windows after the change until 24 hours after it.
        chance: The share of equally long spans without any incident that are quiet, from the rate of false alarms.
        again: Number of changes of series between two known regimes, noticed or not.
        recognised: Share of these changes with a new normal within `PROMPT` windows.
    """

    series: int
    noticed: float
    accepted: float
    median: float
    few: float
    quiet: float
    chance: float
    again: int
    recognised: float


def settled(
    verdicts: pl.DataFrame, truths: Sequence[GroundTruth], turned: Mapping[str, tuple[str, float]], step: int
) -> list[Settled]:
    """How the detector handled each series that a change of state affected.

    Args:
        verdicts: Columns ``entity``, ``metric``, ``window_end``, ``kind``; verdicts that are no news may be missing.
        truths: The incidents; anomalies and incidents of log lines are left out.
        turned: For each change of state, by id: (parameter of the simulation that it changed, new value); 0 is the
            initial value. The values of all parameters that affect a series are its regime.
        step: Time between two windows, milliseconds.
    """
    news = verdicts.filter(pl.col("kind").is_in(ALARM_KINDS))
    own = {(str(entity), str(metric)): part for (entity, metric), part in news.group_by("entity", "metric")}
    nothing, made = news.clear(), []
    lives: dict[tuple[str, str], _Life] = {}
    for truth in sorted(truths, key=lambda truth: truth.start):
        for metric in truth.metrics if truth.cls == "state_change" and truth.metrics != ["logs"] else []:
            life = lives.setdefault((truth.entity, metric), _Life())
            again = life.turn(*turned[truth.id])
            one = _settled(own.get((truth.entity, metric), nothing), truth, metric, step, again=again)
            life.end(accepted=one.accepted >= 0)
            made.append(one)
    return made


class _Life:
    """The regimes of one series: the present one, those that are known, and whether the present one is known."""

    def __init__(self) -> None:
        self._knobs: dict[str, float] = {}
        self._known: set[frozenset[tuple[str, float]]] = {frozenset()}
        self._settled = True

    def turn(self, knob: str, to: float) -> bool:
        """Changes a parameter of the simulation; returns whether that leads from one known regime to another."""
        before = self._regime
        self._knobs[knob] = to
        return self._settled and self._regime in self._known and self._regime != before

    def end(self, *, accepted: bool) -> None:
        """Records whether the detector accepted the present regime as a new normal."""
        self._settled = accepted
        if accepted:
            self._known.add(self._regime)

    @property
    def _regime(self) -> frozenset[tuple[str, float]]:
        return frozenset((knob, to) for knob, to in self._knobs.items() if to)


def _settled(news: pl.DataFrame, truth: GroundTruth, metric: str, step: int, *, again: bool) -> Settled:
    day = news.filter(pl.col("window_end") > truth.start, pl.col("window_end") <= truth.start + DAY)
    windows = -(-(np.sort(day["window_end"].to_numpy()) - truth.start) // step)
    called = day.filter(pl.col("kind") == "new_normal")["window_end"].sort().to_list()[:1]
    return Settled(
        truth=truth,
        metric=metric,
        noticed=bool((windows <= SETTLE).any()),
        accepted=-(-(called[0] - truth.start) // step) if called else -1,
        alerts=int((np.diff(windows) > CALM).sum()) + min(len(windows), 1),
        quiet=not (windows > SETTLE).any(),
        again=again,
    )


def summary(made: Sequence[Settled], false_alarms: float, step: int) -> Settlings:
    """Sums up how the detector handled changed series.

    Args:
        made: The changed series, as from `settled`.
        false_alarms: False alarms per series and month, as from `kinds.false_alarms`.
        step: Time between two windows, milliseconds.
    """
    noticed, again = [one for one in made if one.noticed], [one for one in made if one.again]
    called = [one.accepted for one in noticed if one.accepted >= 0]
    return Settlings(
        series=len(made),
        noticed=_share([one.noticed for one in made]),
        accepted=_share([0 <= one.accepted <= SETTLE for one in noticed]),
        median=float(np.median(called)) if called else float("nan"),
        few=_share([one.alerts <= 2 for one in noticed]),
        quiet=_share([one.quiet for one in noticed]),
        chance=float(np.exp(-false_alarms * (DAY - SETTLE * step) / MONTH)),
        again=len(again),
        recognised=_share([0 <= one.accepted <= PROMPT for one in again]),
    )


def _share(flags: Sequence[bool]) -> float:
    return float(np.mean(flags)) if flags else float("nan")
