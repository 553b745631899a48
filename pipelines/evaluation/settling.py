"""How single series settle after a change of state: noticed, accepted as the new normal, recognised, and then quiet.

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
from pipelines.evaluation.kinds import CALM, MONTH, SETTLE

PROMPT = 5
"""Windows within which a regime seen before is to be recognised."""

DAY = 86_400_000


@dataclass(frozen=True)
class Settled:
    """What became of one series of a machine whose state changed.

    Args:
        truth: The change.
        metric: One of the metrics that show it.
        noticed: Whether there was any alert of this metric within `SETTLE` windows of the change.
        accepted: Windows from the change to the first new normal of that day; -1 if there is none.
        alerts: Alerts of the day.
        quiet: Whether there is no news after the first `SETTLE` windows until the day is over.
        again: Whether it is a change to a regime that the series was seen to know, from one that it was seen to know:
            that of its beginning, or one with a new normal within a day of the change to it.
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
    """Shares over all series whose state changed; NaN where there are none to count.

    Args:
        series: Changed series: one for each change, machine and metric that the truth says shows it.
        noticed: Share of them with any alert within `SETTLE` windows: the others moved too little, or were overlooked.
        accepted: Of those noticed: share with a new normal within `SETTLE` windows. One that is never called a new
            normal counts as missed, even if it is quiet.
        median: Of those with a new normal within a day: windows until then.
        few: Of those noticed: share with at most two alerts in the day.
        quiet: Of those noticed: share without any news after `SETTLE` windows until the day is over.
        chance: The same share of as long spans in which nothing happens, from the rate of false alarms.
        again: Changes of series to a regime that they were seen to know, noticed or not.
        recognised: Share of them with a new normal within `PROMPT` windows.
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
    """What became of each series that a change of state touched.

    Args:
        verdicts: Columns ``entity``, ``metric``, ``window_end``, ``kind`` of at least those that are news.
        truths: The incidents; anomalies, and those of log lines, are left out.
        turned: By the id of a change of state, which knob it turned and to where; 0: back to where it was at first. The
            positions of all knobs that touch a series are its regime.
        step: Milliseconds between two windows.
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
    """The regimes of one series: where the knobs are, which combinations it knows, and whether it knows the present."""

    def __init__(self) -> None:
        self._knobs: dict[str, float] = {}
        self._known: set[frozenset[tuple[str, float]]] = {frozenset()}
        self._settled = True

    def turn(self, knob: str, to: float) -> bool:
        """Turns a knob; whether that is from a known regime to another known one."""
        before = self._regime
        self._knobs[knob] = to
        return self._settled and self._regime in self._known and self._regime != before

    def end(self, *, accepted: bool) -> None:
        """Says whether the present regime was accepted."""
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
    """The shares.

    Args:
        made: As from `settled`.
        false_alarms: Per series and month, as from `kinds.false_alarms`.
        step: Milliseconds between two windows.
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
