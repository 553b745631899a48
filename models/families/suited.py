"""Each series by the family that suits it: counts, ratios and few distinct values in place of the mixture's view."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.experts.base import Lesson, Step
from models.families import beta_binomial, categorical
from models.families.beta_binomial import learn_ratio, ratio_ahead, ratio_quantile, ratio_surprise
from models.families.beta_binomial import log_chance as ratio_log_chance
from models.families.categorical import (
    SLOTS,
    chance,
    distinct,
    forget_places,
    gap,
    learn_place,
    place_quantile,
    rarity,
    total,
)
from models.families.choice import NONE, Choice, Family, choose, is_possible, note_support, prefer
from models.families.discrete import mid_tail
from models.families.gamma_poisson import count_ahead, learn_count
from models.families.negative_binomial import count_quantile, log_chance, log_tails
from models.kernels import kernel, within
from models.numbers.arrays import Array, Columns, Ints, Rows, clamp, prefixed
from models.records import Record
from models.series.mixture import Mixture, log_mass

_TRIALS = 1000.0
"""What each ratio is a share of, assumed."""

_MOST = 1e15
"""Events of a window that are judged at most."""

_LN2 = math.log(2.0)
_COUNT, _RATIO, _CATEGORICAL = Family.COUNT.value, Family.RATIO.value, Family.CATEGORICAL.value

NAMES = tuple(family.name.lower() for family in Family)[1:]
"""Names of the families beside the mixture, in the order of their codes."""


@dataclass(frozen=True)
class About:
    """What is known beforehand of n series and their window.

    Args:
        kind: Codes of `MetricKind`, shape (n,).
        family: Codes of the `Family` that the user prescribes, or `NONE`, shape (n,).
        samples: Samples that the value is the mean of, where they are of use: for counts; else 1; shape (n,).
    """

    kind: Ints
    family: Ints
    samples: Array

    @classmethod
    def unknown(cls, n: int) -> About:
        """Gauges of one sample each, whose family is free."""
        return cls(np.zeros(n, np.int64), np.full(n, NONE, np.int64), np.ones(n))

    def part(self, rows: slice | Ints) -> About:
        """That of some of the series."""
        return About(self.kind[rows], self.family[rows], self.samples[rows])


class Foreseen(NamedTuple):
    """What a family says of a value: surprise in nats, at least 0, and the band."""

    surprise: float
    lower: float
    typical: float
    upper: float


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known."""
    counts: Columns = {name: np.zeros(n, np.float32) for name in ("events", "exposure", "windows", "excess")}
    columns = Choice().new_state(n) | prefixed("count.", counts)
    columns |= prefixed("ratio.", beta_binomial.new_state(n))
    return columns | prefixed("categorical.", categorical.new_state(n))


@kernel
def foresee(families: Record, value: float, samples: float, z: float) -> Foreseen:
    """What the chosen family, which is not the mixture, says of a value.

    Args:
        families: The columns.
        value: Finite; what lies outside of the support is judged as its end.
        samples: That the value is the mean of, at least 1.
        z: The ends of the band have the mass beyond them that a standard normal has beyond z.
    """
    if families.family == _COUNT:
        foreseen = _foresee_count(families.count, value, samples, z)
    elif families.family == _RATIO:
        ahead = ratio_ahead(families.ratio, _TRIALS)
        nats = ratio_surprise(ahead, within(value, 0.0, 1.0) * _TRIALS)
        foreseen = Foreseen(nats, ratio_quantile(ahead, -z), ratio_quantile(ahead, 0.0), ratio_quantile(ahead, z))
    else:
        categorical = families.categorical
        ends = place_quantile(categorical, -z), place_quantile(categorical, 0.0), place_quantile(categorical, z)
        foreseen = Foreseen(rarity(categorical, value), ends[0], ends[1], ends[2])
    upper = max(foreseen.lower, foreseen.upper)
    return Foreseen(foreseen.surprise, foreseen.lower, within(foreseen.typical, foreseen.lower, upper), upper)


@kernel
def _events(value: float, samples: float) -> float:
    return float(np.rint(within(value * samples, 0.0, _MOST)))


@kernel
def _foresee_count(count: Record, value: float, samples: float, z: float) -> Foreseen:
    """Gamma-Poisson of the events of a window, which are its mean by its samples; the surprise is that of mid-p."""
    ahead, events = count_ahead(count, samples), _events(value, samples)
    log, tails = log_chance(ahead, events), log_tails(ahead, events)
    return Foreseen(
        max(-_LN2 - min(mid_tail(tails[0], log), mid_tail(tails[1], log)), 0.0),
        math.floor(count_quantile(ahead, -z)) / samples,
        count_quantile(ahead, 0.0) / samples,
        math.ceil(count_quantile(ahead, z)) / samples,
    )


@kernel
def learn_families(
    config: DetectorConfig,
    choice: Choice,
    families: Record,
    mixture: Mixture,
    step: Step,
    lesson: Lesson,
    kind: int,
    prescribed: int,
    samples: float,
) -> None:
    """Adds a value to the families that are possible, and chooses anew.

    Args:
        config: The constants.
        choice: Those of the choice.
        families: The columns; changed.
        mixture: What the experts predicted.
        step: The value, and what is known of it.
        lesson: What is to be learned from it.
        kind: Code of `MetricKind`.
        prescribed: Code of the `Family` that the user prescribes, or `NONE`.
        samples: That the value is the mean of, at least 1.
    """
    forget, value = config.forget, lesson.value
    count = is_possible(families, _COUNT, kind, prescribed)
    ratio = is_possible(families, _RATIO, kind, prescribed)
    place = is_possible(families, _CATEGORICAL, kind, prescribed)
    by_count = by_ratio = by_place = 0.0
    if count:
        by_count = log_chance(count_ahead(families.count, samples), _events(value, samples))
        by_count -= log_mass(mixture, value, 1 / samples)
        learn_count(families.count, within(value * samples, 0.0, _MOST), samples, lesson.weight, forget)
        count = families.count.windows >= choice.enough
    if ratio:
        share = within(value, 0.0, 1.0)
        by_ratio = ratio_log_chance(ratio_ahead(families.ratio, _TRIALS), share * _TRIALS)
        by_ratio -= log_mass(mixture, value, 1 / _TRIALS)
        learn_ratio(families.ratio, share, _TRIALS, lesson.weight, forget)
        ratio = families.ratio.windows >= choice.enough
    if place:
        categorical = families.categorical
        by_place = math.log(chance(categorical, value)) - log_mass(mixture, value, gap(categorical))
        learn_place(categorical, value, lesson.weight, forget)
        number = distinct(categorical)
        place = total(categorical) >= choice.enough and number <= max(step.seen / 4, 1.0)
        if total(categorical) >= choice.enough and number == SLOTS:  # there may be more than can be followed
            place = False
            forget_places(categorical)
    note_support(families, step.value * samples, forget)
    prefer(choice, families, _COUNT, count, step.seen, by_count, forget)
    prefer(choice, families, _RATIO, ratio, step.seen, by_ratio, forget)
    prefer(choice, families, _CATEGORICAL, place, step.seen, by_place, forget)
    choose(choice, families, step.seen, (True, count, ratio, place), prescribed)


def shift_families(state: Rows, offset: Array, few: float) -> None:
    """Moves what was learned of counts and ratios by an offset, shape (n,), and lets it count as few values."""
    count, ratio = (Rows(state.state, state.rows, f"{state.prefix}{name}.") for name in ("count", "ratio"))
    left = _left(count["windows"], few)
    count["events"] = np.maximum(count["events"] + offset * count["exposure"], 0.0) * left
    for name in ("exposure", "windows", "excess"):
        count[name] = count[name] * left
    left, successes = _left(ratio["windows"], few), ratio["successes"]
    whole = successes + ratio["failures"]
    moved = clamp(successes + offset * whole, 0.0, whole)
    ratio["successes"], ratio["failures"] = moved * left, (whole - moved) * left
    for name in ("windows", "excess"):
        ratio[name] = ratio[name] * left


def _left(windows: Array, few: float) -> Array:
    """The share of what was learned that is left when it is to count as few windows."""
    return np.minimum(windows, few) / np.maximum(windows, 1e-12)
