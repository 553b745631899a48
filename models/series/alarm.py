"""The alarm: how much evidence a value must have to be reported, at so many false alarms per series and month.

This is the one place where that is decided. A month has 43,200 windows of a minute and 1,440 of half an hour:
the same evidence is a month's strongest by chance in the one and rare in the other. So the bar follows the clock of the
series. Shorter windows than a minute depend on one another and count as one; longer ones than half an hour as that.
In the first six hours of a series the bar is that of five minutes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from models.config import DetectorConfig
from models.evidence.departure import Departure, clock_of, depart
from models.evidence.recurring import is_expected, runs_on
from models.evidence.score import scored
from models.experts.base import Step
from models.kernels import kernel, within
from models.records import Record
from models.regimes.again import nats_again
from models.regimes.reference import Expected

_MONTH = 30 * 86_400_000.0
_SHORTEST, _LONGEST = 60_000.0, 1_800_000.0
_USUAL = 300_000.0
"""Milliseconds between two values at which a score of ``threshold`` is reported."""

_SHARE = 20.0
"""Departures may make one in so many of the false alarms."""


@kernel
def log_values(clock: float) -> float:
    """Logarithm of the number of values per month.

    Args:
        clock: Usual milliseconds between two values; 0: not known, taken for five minutes.

    >>> [round(log_values(minutes * 60_000.0), 2) for minutes in (0.0, 0.1, 1.0, 5.0, 60.0, 1440.0)]
    [9.06, 10.67, 10.67, 9.06, 7.27, 7.27]
    """
    return math.log(_MONTH / within(clock if clock > 0 else _USUAL, _SHORTEST, _LONGEST))


@kernel
def by_clock(config: DetectorConfig, clock: float) -> float:
    """By how much more weight of evidence is needed than of windows of five minutes.

    >>> from models.records import constants
    >>> config = constants(all=DetectorConfig()).all
    >>> [round(by_clock(config, minutes * 60_000.0), 1) for minutes in (1.0, 5.0, 60.0)]
    [11.3, 0.0, -12.5]
    """
    return config.alarm_clock * (log_values(clock) - log_values(_USUAL))


@kernel
def bar(config: DetectorConfig, clock: float) -> float:
    """The record_score from which a value is reported.

    Args:
        config: The constants; its ``threshold`` is that of windows of five minutes at one false alarm per month.
        clock: Usual milliseconds between two values.

    >>> from dataclasses import replace
    >>> from models.records import constants
    >>> for false_alarms in (4.0, 1.0, 0.25):
    ...     config = constants(all=replace(DetectorConfig(), false_alarms=false_alarms)).all
    ...     print([round(bar(config, minutes * 60_000.0), 1) for minutes in (1.0, 5.0, 60.0)])
    [50.2, 37.7, 13.5]
    [58.4, 50.0, 35.6]
    [64.3, 58.3, 48.7]
    """
    share = within(config.threshold, 0.0, 99.999) / 100
    rarer = config.alarm_budget * -math.log(config.false_alarms)
    return scored(max(config.half * share / (1 - share) + by_clock(config, clock) + rarer, 0.0), config.half)


@kernel
def counts(clock: float) -> float:
    """What a window counts where evidence adds up from window to window, beside one of five minutes.

    Windows that follow on one another soon say much the same: a minute says a fifth of what five minutes say.

    Args:
        clock: See `log_values`.

    >>> [counts(minutes * 60_000.0) for minutes in (0.0, 0.1, 1.0, 60.0)]
    [1.0, 0.2, 0.2, 1.0]
    """
    return within(clock if clock > 0 else _USUAL, _SHORTEST, _USUAL) / _USUAL


@kernel
def stuck_from(config: DetectorConfig, alarm: float) -> float:
    """Evidence of exact repeats, in nats, from which a run of them is reported: 13 of windows of five minutes.

    Args:
        config: The constants.
        alarm: As from `bar`.

    >>> from models.records import constants
    >>> config = constants(all=DetectorConfig()).all
    >>> [round(stuck_from(config, bar(config, minutes * 60_000.0)), 1) for minutes in (1.0, 5.0, 60.0)]
    [25.6, 13.0, 13.0]
    """
    usual = within(config.threshold, 1.0, 99.0) / 100
    share = within(max(alarm, config.threshold), 1.0, 99.0) / 100
    odds, more = usual / (1 - usual), share / (1 - share)
    return config.frozen_half * more * more / odds


@kernel
def lent(config: DetectorConfig, clock: float, nats: float) -> float:
    """Weight of evidence of a departure from the recent median; 0 of one that comes too often by chance.

    Args:
        config: The constants.
        clock: Usual milliseconds between two values.
        nats: Those of the departure.
    """
    needed = log_values(clock) + math.log(_SHARE)
    return config.half * nats / needed + by_clock(config, clock) if nats >= needed else 0.0


class Ranked(NamedTuple):
    """The weight of evidence of a value by its own channels, and how far evidence is to be trusted.

    Args:
        weight: Weight of evidence.
        trust: What evidence counts of a series that is being learned, in [0, 1].
        worth: What it counts after what operators said of the series.
        valid: Whether there is a value.
    """

    weight: float
    trust: float
    worth: float
    valid: bool


class Weighed(NamedTuple):
    """The weight of evidence of a value, and how it stands to the alarm.

    Args:
        weight: Weight of evidence, with what departures and what came before lend, and less of what is expected.
        alarm: The record_score from which the value is reported.
        expected: Whether it recurs at its time, so that it is not reported.
        unusual: Whether it is one of those that may recur; does not depend on the threshold.
        departure: How far it has left the median of the recent ones.
        again: Weight of evidence lent as the same was news before.
    """

    weight: float
    alarm: float
    expected: bool
    unusual: bool
    departure: Departure
    again: float


@kernel
def weigh_news(
    constants: Record,
    series: Record,
    local: int,
    step: Step,
    lived: float,
    usual: Expected,
    ranked: Ranked,
) -> Weighed:
    """Adds to the weight of evidence what departures and what was news before lend; takes off what is expected.

    Args:
        constants: Those of the detector.
        series: The state of the series.
        local: Milliseconds on the wall clock, as if they were an epoch.
        step: What is known of the value.
        lived: Length of the range lived through.
        usual: What the reference expected.
        ranked: What its own channels say.
    """
    config, clock = constants.config, clock_of(series.departure)
    more = by_clock(config, clock)
    departure = depart(constants.departures, series.departure, step.value, lived)
    again = 0.0
    if not departure.covers_day:  # departures tell again by themselves, as incidents hardly teach them
        again = nats_again(constants.regimes, config.half, max(more, 0.0), series.again, series.regime, usual)
    own = max(ranked.weight, ranked.trust * ranked.worth * again)
    weight = own
    if ranked.valid and abs(usual.off) >= config.far * usual.scale:
        weight = max(own, ranked.worth * lent(config, clock, departure.nats))
    unusual = ranked.valid and weight >= config.half + more
    apart = float(series.departure.clock)
    expected = runs_on(series.recurring, local, apart)
    if unusual:
        expected = is_expected(series.recurring, local, apart, departure.times)
    weight = config.recurs * own if expected else weight  # departures lend nothing to what is expected
    return Weighed(weight, bar(config, clock), expected, unusual, departure, again)
