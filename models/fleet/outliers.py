"""Outliers: a series whose distance from the same metric of its peers is extraordinary. Compiled; no clock.

Of each window the values of all members of a role are compared: ``asinh(value / scale)``, a logarithm but for values
near 0. A member's *distance* is that from the median of the others. What all do together leaves it as it is. A member
that is always twice the others has a distance of its own, which it keeps. Each distance is judged against the mean and
the variance of those before, which begin with what the role shows, and the mean of the last windows is calibrated on
the history of all members, of which its own counts most.

The first window in which this is rarer than the budget of false alarms allows is an outlier's. It stays one, learning
nothing of what is usual, until it is like its peers again, or for a day: then the distance has become its normal. A
member that is new is asked once, after `FleetConfig.known` windows, whether it has been unlike the others from its
start: by a Student-t test against the usual distances of these. If more than a quarter of the role leave their
distances, the role changes, and none of them is an outlier.

Sources: C. Leys et al., Detecting outliers: do not use standard deviation around the mean, use absolute deviation
around the median, J. Exp. Soc. Psych. 49 (2013); R. J. Bolton, D. J. Hand, Peer group analysis, in Statistical Science
17 (2002); S. W. Roberts, Control chart tests based on geometric moving averages, Technometrics 1 (1959).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.evidence.repeats import NEVER
from models.evidence.score import is_alarm, scored
from models.fleet.config import FleetConfig
from models.fleet.windows import EVENT, Members, Outcome, Seen, Window
from models.kernels import kernel, within
from models.numbers.arrays import Array, Columns, Flags, Ints, Rows, prefixed
from models.numbers.calibration import TailCalibration, learn_tail
from models.records import Layout, Record, Table, constants
from models.series.alarm import bar, by_clock, lent
from models.series.feedback import Feedback, fade, worth_of

_BAND = 3.2905
"""Standard deviations of the band that holds 99.9 % of the distances."""

_TIMES, _MOST = 1000.0, 1e30
"""A value counts as at most so many times the usual size of the metric, and as no more than that: it may be wrong."""

_FARTHEST = 40.0
"""A value counts as no further than that from 0, on the scale of distances."""

_BEGINS, _GROWS, _BACK, _ACCEPTED, _ALONE = (int(outcome) for outcome in Outcome)
SIX_HOURS = 21_600_000.0
"""From so many milliseconds of windows on the usual time between two values counts."""

_TWICE = math.log(2.0)
"""By how much a distance must have grown to be reported again."""


class Outliers:
    """Judges the members of roles beside one another, and learns from them; holds no state.

    Args:
        config: The constants.
        series: Those of series, of which the budget of false alarms counts.

    >>> fleet, rng = Outliers(FleetConfig(), DetectorConfig()), np.random.default_rng(0)
    >>> state, rows, n = fleet.new_state(6), np.arange(6), 6
    >>> def window(minute, factor=1.0):
    ...     value = 100 * np.exp(rng.normal(0, 0.05, n) + np.sin(minute / 100)) * [2, 1, 1, 1, 1, factor]
    ...     time = np.full(n, minute * 60_000)
    ...     return fleet.step(state, Members(rows, 0 * rows, time, time + 60_000, value, 0.0 * rows, rows >= 0))
    >>> sum(len(window(minute)) for minute in range(300))
    0
    >>> events = [window(minute, 3.0) for minute in range(300, 320)]
    >>> [(minute, int(e["place"][0]), Outcome(int(e["outcome"][0])).name) for minute, e in enumerate(events) if len(e)]
    [(2, 5, 'BEGINS')]
    """

    def __init__(self, config: FleetConfig, series: DetectorConfig) -> None:
        self.tail = TailCalibration(2.4, 0.4, tail=series.calibration_tail, early=series.calibration_early)
        self.feedback = Feedback()
        self._constants = constants(fleet=config, series=series, tail=self.tail, feedback=self.feedback)
        self.layout = Layout(self._columns(0))

    def new_state(self, n: int) -> Columns:
        """The columns for n series; they share the memory of one table of records."""
        return self.layout.joined(self._columns(n))

    def _columns(self, n: int) -> Columns:
        names = ("count", "size", "mean", "variance", "smooth", "run", "level", "told", "true", "false")
        small: Columns = {name: np.zeros(n, np.float32) for name in names}
        times: Columns = {name: np.full(n, NEVER, np.int64) for name in ("since", "rising")}
        own: Columns = small | times | {"group": np.zeros(n, np.int64)}
        return prefixed("fleet.", own) | prefixed("fleet.tail.", self.tail.new_state(n))

    def learn_label(self, state: Columns, rows: Ints, true: Flags) -> None:
        """Learns that the last outlier of some series was true, or false; changes those rows of the state."""
        self.feedback.learn_label(Rows(state, rows, "fleet."), true)

    @staticmethod
    def accept(state: Columns, rows: Ints) -> None:
        """Takes the present distances of some series that are outliers for usual: their next window ends that."""
        unlike = rows[state["fleet.since"][rows] != NEVER]
        state["fleet.mean"][unlike] = state["fleet.level"][unlike]
        state["fleet.told"][unlike] = 0.0

    @staticmethod
    def release(state: Columns, rows: Ints) -> None:
        """Ends what makes some series unlike their peers, as if they were like them again.

        Args:
            state: As from `new_state`; changed.
            rows: Rows of the series, shape (n,).
        """
        for name, value in (("since", NEVER), ("rising", NEVER), ("smooth", 0), ("run", 0)):
            state[f"fleet.{name}"][rows] = value

    def step(self, state: Columns, members: Members) -> Table:
        """Judges windows in their order, and learns from each cell before the next.

        Args:
            state: As from `new_state`; changed.
            members: The windows.

        Returns:
            Records of `EVENT`, in order of the windows.
        """
        first = np.flatnonzero(np.append(True, np.diff(members.cell) != 0)) if len(members.cell) else members.cell
        cells = np.append(first, len(members.cell)).astype(np.int64)
        events = np.empty(len(members.cell), EVENT)
        with self.layout.opened(state, members.rows) as (table, places):
            judge: Any = _judge
            given = [np.ascontiguousarray(column) for column in members[2:]]
            count = judge(self._constants, table, np.ascontiguousarray(places), cells, *given, events)
        return events[:count]


class _Pool(NamedTuple):
    """What the known members of a cell have in common: how many they are, and sums over them."""

    known: float
    variance: float
    weight: float
    apart: float
    edges: float
    counts: float
    shape: float
    rate: float


@kernel
def _pool(config: FleetConfig, tail: TailCalibration, table: Table, rows: Ints, begin: int, end: int) -> _Pool:
    known = variance = weight = apart = edges = counts = shape = rate = 0.0
    for i in range(begin, end):
        own = table[rows[i]].fleet
        if own.count < config.known:
            continue
        known += 1.0
        share = min(float(own.count), 1000.0)
        variance += share * own.variance
        weight += share
        apart += float(own.mean) * own.mean
        edges += float(own.tail.count) * own.tail.edge
        counts += own.tail.count
        shape += max(own.tail.shape - tail.strength, 0.0)
        rate += max(own.tail.rate - tail.strength * tail.scale, 0.0)
    return _Pool(known, variance, weight, apart, edges, counts, shape, rate)


@kernel
def _others_median(ordered: Array, n: int, y: float) -> float:
    """The median of n ordered numbers without one that equals ``y``."""
    place = int(np.searchsorted(ordered[:n], y))
    low, high = (n - 2) // 2, (n - 1) // 2
    return 0.5 * (ordered[low + (low >= place)] + ordered[high + (high >= place)])


@kernel
def _spread(config: FleetConfig, pool: _Pool, own: Record) -> float:
    """Standard deviation of a member's distance."""
    role = pool.variance / pool.weight if pool.weight > 0 else float(own.variance)
    count = min(float(own.count), 1000.0)
    both = (count * own.variance + config.strength * role) / (count + config.strength)
    return math.sqrt(both + config.least * config.least)


@kernel
def _edge(tail: TailCalibration, pool: _Pool, own: Record) -> float:
    counts = min(pool.counts, 200.0)
    role = pool.edges / pool.counts if pool.counts > 0 else tail.edge
    return (float(own.tail.count) * own.tail.edge + counts * role) / max(own.tail.count + counts, 1.0)


@kernel
def _nats(config: FleetConfig, tail: TailCalibration, pool: _Pool, own: Record, edge: float, statistic: float) -> float:
    """-ln of the chance of a statistic at least so high, by its own history and that of the others."""
    if statistic <= edge:
        return statistic / edge * tail.nats
    shape = max(pool.shape - max(own.tail.shape - tail.strength, 0.0), 0.0)
    rate = max(pool.rate - max(own.tail.rate - tail.strength * tail.scale, 0.0), 0.0)
    share = min(1.0, config.others / shape) if shape > 0 else 0.0
    return tail.nats + (own.tail.shape + share * shape) * math.log1p(
        (statistic - edge) / (own.tail.rate + share * rate)
    )


@kernel
def _from_start(pool: _Pool, config: FleetConfig, own: Record) -> float:
    """-ln of the chance of such a usual distance in a role whose members have those of the others.

    That of a Student-t with as many degrees of freedom as there are others; its tail as the density times Mills' ratio.
    """
    freedom = pool.known
    spread = pool.apart / freedom + config.apart * config.apart + own.variance / max(float(own.count), 1.0)
    square = max(float(own.mean) * own.mean / spread, 1.0)
    density = math.lgamma(0.5 * (freedom + 1)) - math.lgamma(0.5 * freedom) - 0.5 * math.log(math.pi * freedom)
    density -= 0.5 * (freedom + 1) * math.log1p(square / freedom)
    return -density - math.log(2 * (freedom + square) / (freedom * math.sqrt(square)))


@kernel
def _say(event: Record, own: Record, seen: Seen, outcome: int, usual: float, spread: float) -> None:
    event.place, event.outcome, event.since, event.peers = seen.place, outcome, own.since, seen.peers
    event.early, event.nats, event.score, event.values = 0, 0.0, 0.0, own.count
    event.theirs, event.expected = seen.scale * math.sinh(seen.median), seen.scale * math.sinh(seen.median + usual)
    event.lower = seen.scale * math.sinh(seen.median + usual - _BAND * spread)
    event.upper = seen.scale * math.sinh(seen.median + usual + _BAND * spread)


@kernel
def _learn(config: FleetConfig, own: Record, seen: Seen, value: float, reach: float) -> None:
    """Adds a distance to what is usual, one that lies further than ``reach`` as if it lay there."""
    gain = max(1.0 / (own.count + 1.0), config.forget)
    off = within(seen.distance - own.mean, -reach, reach)
    own.size += gain * (min(abs(value), _TIMES * seen.scale / config.small, _MOST) - own.size)
    own.variance = (1.0 - gain) * (own.variance + gain * off * off)
    own.mean += gain * off
    own.count += 1.0


@kernel
def _newcomer(constants: Record, pool: _Pool, own: Record, seen: Seen, window: Window, event: Record) -> bool:
    """Learns from a window of a member that is not known yet; whether it has been an outlier from its start."""
    config, series = constants.fleet, constants.series
    own.rising = window.start if own.count == 0 else own.rising
    _learn(config, own, seen, window.value, math.inf)
    if own.count < config.known or pool.known < config.peers or abs(own.mean) < config.material:
        return False
    nats = _from_start(pool, config, own)
    if nats < config.start:
        return False
    spread = _spread(config, pool, own)
    own.since, own.level, own.told, own.mean = own.rising, own.mean, abs(own.mean), 0.0
    _say(event, own, seen, _BEGINS, 0.0, spread)
    weight = series.half * nats / config.start + by_clock(series, window.clock)
    event.early, event.nats, event.score = 1, nats, scored(weight, series.half)
    return True


@kernel
def _known(constants: Record, pool: _Pool, few: bool, own: Record, seen: Seen, window: Window, event: Record) -> bool:
    """Judges a window of a known member, and learns from it; whether there is something to say."""
    config, series, tail = constants.fleet, constants.series, constants.tail
    spread, usual = _spread(config, pool, own), float(own.mean)
    apart = _apart(config)
    statistic = abs(seen.smooth) / apart
    nats = _nats(config, tail, pool, own, seen.edge, statistic)
    weight = worth_of(constants.feedback, own) * max(lent(series, window.clock, nats), 0.0)
    fade(constants.feedback, own)
    score = scored(weight, series.half)
    own.smooth = seen.smooth
    own.run = own.run + 1.0 if statistic > seen.edge else 0.0
    if own.run == 0:
        own.rising = NEVER
    elif own.run == 1:
        own.rising = window.start
    if own.since != NEVER:
        own.level += config.pace * (seen.distance - own.level)
        away = abs(own.level - usual)
        back = away < max(config.back * own.told, 2.0 * spread * apart)
        accepted = not back and (own.told == 0 or window.end - own.since >= config.accept)
        grown = weight > 0 and away >= own.told + _TWICE
        if not (back or accepted or grown):
            return False
        usual = float(own.level) if accepted else usual
        _say(event, own, seen, _BACK if back else (_ACCEPTED if accepted else _GROWS), usual, spread)
        event.nats, event.score = nats, score if grown and not accepted else 0.0
        own.told, own.mean = away, usual
        if back or accepted:
            own.since, own.rising, own.smooth, own.run = NEVER, NEVER, 0.0, 0.0
        return True
    if own.run <= min(float(config.patience), config.youth * own.count):
        learn_tail(tail, own.tail, statistic)
    away = abs(seen.distance - usual)
    begins = few and weight > 0 and is_alarm(score, bar(series, window.clock)) and away >= config.material
    if begins:
        own.since, own.level, own.told = own.rising, seen.distance, away
        _say(event, own, seen, _BEGINS, usual, spread)
        event.nats, event.score = nats, score
    else:
        _learn(config, own, seen, window.value, config.reach * spread)
    return begins


@kernel
def _leave(event: Record, own: Record, place: int) -> None:
    """Ends what made a member unlike its peers, of which there are too few now, and says so."""
    event.place, event.outcome, event.since, event.peers = place, _ALONE, own.since, 0
    event.early, event.nats, event.score, event.values = 0, 0.0, 0.0, own.count
    event.theirs = event.expected = event.lower = event.upper = math.nan
    own.since, own.rising, own.smooth, own.run = NEVER, NEVER, 0.0, 0.0


@kernel
def _apart(config: FleetConfig) -> float:
    """Standard deviation of the mean of the last windows, if these are independent, in that of one window."""
    return math.sqrt(config.pace / (2.0 - config.pace))


@kernel
def _scale_of(config: FleetConfig, table: Table, rows: Ints, value: Array, begin: int, end: int) -> float:
    """The value of a cell below which values are compared as they are."""
    size, known = 0.0, 0
    for i in range(begin, end):
        own = table[rows[i]].fleet
        if own.count > 0:
            size += own.size
            known += 1
    if known == 0:
        known = end - begin
        ordered = np.sort(np.abs(value[begin:end]))
        middle = ordered[known // 2]
        for one in ordered:
            size += min(one, _TIMES * middle, _MOST) if middle > 0 else min(one, _MOST)
    return config.small * size / known if size > 0 else 1.0


@kernel
def _judge(
    constants: Record,
    table: Table,
    rows: Ints,
    cells: Ints,
    start: Ints,
    ends: Ints,
    value: Array,
    clock: Array,
    taught: Flags,
    events: Table,
) -> int:
    """See `Outliers.step`; writes events, and returns their number."""
    config, tail = constants.fleet, constants.tail
    said = largest = 0
    for cell in range(len(cells) - 1):
        largest = max(largest, cells[cell + 1] - cells[cell])
    y, distance, median, smooth, edge = np.empty((5, largest))
    for cell in range(len(cells) - 1):
        begin, end = cells[cell], cells[cell + 1]
        n = end - begin
        if n < config.peers + 1:
            for k in range(begin, end):
                own = table[rows[k]].fleet
                # while it is an outlier, `rising` is when it was last compared
                if taught[k] and own.since != NEVER and ends[k] - max(own.since, own.rising) >= config.accept:
                    _leave(events[said], own, k)
                    said += 1
            continue
        scale = _scale_of(config, table, rows, value, begin, end)
        pool = _pool(config, tail, table, rows, begin, end)
        for k in range(n):
            y[k] = within(math.asinh(value[begin + k] / scale), -_FARTHEST, _FARTHEST)
        ordered = np.sort(y[:n])
        left = 0
        for k in range(n):
            own = table[rows[begin + k]].fleet
            median[k] = _others_median(ordered, n, y[k])
            distance[k] = y[k] - median[k]
            off = (distance[k] - own.mean) / _spread(config, pool, own)
            smooth[k] = (1.0 - config.pace) * own.smooth + config.pace * within(off, -config.clip, config.clip)
            edge[k] = _edge(tail, pool, own)
            left += own.count >= config.known and abs(smooth[k]) > edge[k] * _apart(config)
        few = left <= max(1.0, config.together * n)
        for k in range(n):
            i = begin + k
            own = table[rows[i]].fleet
            if taught[i]:
                seen = Seen(i, n - 1, median[k], distance[k], scale, smooth[k], edge[k])
                window = Window(start[i], ends[i], value[i], clock[i] if own.count * clock[i] >= SIX_HOURS else 0.0)
                if own.count < config.known:
                    said += _newcomer(constants, pool, own, seen, window, events[said])
                else:
                    said += _known(constants, pool, few, own, seen, window, events[said])
            if own.since != NEVER:
                own.rising = ends[i]
    return said
