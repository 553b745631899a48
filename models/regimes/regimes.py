"""Which regime a series is in: changes of state, and old states that are back.

Kinds only: what is found here changes neither what the experts learn nor the score, with three exceptions. What ended
by return and comes back is lent evidence: see `models.regimes.again`. What has left the recent values is news only if
it lies far from what the reference expects: see `models.series.alarm`. And when an outage (an incident with values
next to nothing, of six windows or more) ends by return, the detector's experts are again as they were before it: see
docs/model.md, "An outage is unlearned when it ends". Scores up to that return are the same.

Sources: R. E. Kass, A. E. Raftery, Bayes factors, JASA 90 (1995); E. S. Page, Continuous inspection schemes,
Biometrika 41 (1954).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.config import DetectorConfig
from models.evidence.repeats import NEVER
from models.evidence.score import is_alarm
from models.experts.base import Step
from models.kernels import kernel
from models.numbers.arrays import Array, Columns, Ints, Rows
from models.records import Record
from models.regimes import incident as incidents
from models.regimes import kept, reference
from models.regimes.challenger import Challenger
from models.regimes.company import Company
from models.regimes.config import RegimesConfig
from models.regimes.incident import (
    CurrentValue,
    Incident,
    go_on,
    is_alive,
    is_dead,
    no_incident,
    write_incident,
)
from models.regimes.kept import SLOTS, is_young, left_ago, place_for_new, slot_left, switch_to
from models.regimes.outcome import Outcome, outcome_of, recall_gains, recalled_so_far
from models.regimes.reference import Expected, is_grown, learn_calm
from models.verdicts import Kind

_NONE = -1
"""No kind."""

_KEPT = 1 - 1 / 43_200
"""Share of the returns of kept regimes that is remembered a value."""

_VISITS, _NEAR = 2.0, 0.7
"""The hour of the day explains a return if it was known from so many times as many values as have returned, and misses
them by no more than this share of what the present regime misses them by."""

_ANOMALY, _STATE_CHANGE = Kind.ANOMALY.code, Kind.STATE_CHANGE.code
_NEW_NORMAL, _RECOVERED = Kind.NEW_NORMAL.code, Kind.RECOVERED.code


class Decision(NamedTuple):
    """What regimes say of a value, and what `learn_regime` writes.

    Args:
        kind: Code of `Kind`, where the value is news of a regime or the end of an incident; else -1.
        turned: Code of `Kind`: what the incident turned out to be, said of its onset; else -1.
        since: Onset of the incident; -1 where there is none.
        inside: Whether an incident is open after the value.
        loud: Whether it is reported, before or with this value.
        explained: Whether the value is no anomaly, whatever its score.
        expected: What the reference expected.
        concerned: Whether an incident was or is asked about at all; if not, what follows says nothing.
        dead: Whether one is open after it and the value is next to nothing.
        calm: Whether the reference learns from the value.
        returned: Whether it was one of some windows, and is over since values are again as expected.
        given_up: Whether it is over since it lasts too long.
        level: Where values have been since it began, on the axis, as of places.
        recalled: Whether a kept regime is back.
        switch: Whether another regime holds from the next value on: ``slot``, at ``shift``.
        slot: See there.
        shift: See there.
        back: Logarithms of the Bayes factors of the kept regimes.
        incident: The incident.
        announced: Whether its change of state has been announced, before or with this value.
    """

    kind: int
    turned: int
    since: int
    inside: bool
    loud: bool
    explained: bool
    expected: Expected
    concerned: bool
    dead: bool
    calm: bool
    returned: bool
    given_up: bool
    level: float
    recalled: bool
    switch: bool
    slot: int
    shift: float
    back: tuple[float, float, float, float]
    incident: Incident
    announced: bool


def new_state(n: int) -> Columns:
    """The columns for n series of which nothing is known.

    ``last``: place of the last value; ``habit``: returns of kept regimes, less what is forgotten; ``said``: whether the
    begin of the present regime was news; ``counted``: whether the machine counts an incident of the series as open.
    """
    columns: Columns = {"last": np.zeros(n, np.float32), "habit": np.zeros(n, np.float32)}
    columns |= {name: np.zeros(n, np.bool_) for name in ("said", "counted")}
    return columns | reference.new_state(n) | incidents.new_state(n) | kept.new_state(n)


@kernel
def is_same(regime: Record, place: float) -> bool:
    """Whether a value is the one before, to the precision in which that is remembered."""
    return np.float32(place) == regime.last


@kernel
def decide(
    config: RegimesConfig,
    detector: DetectorConfig,
    regime: Record,
    current: CurrentValue,
    company: Company,
    expected: Expected,
) -> Decision:
    """What kind of news a value is, beyond its score; changes nothing.

    Args:
        config: The constants.
        detector: Those of the detector.
        regime: The columns of regimes.
        current: What is known of the value.
        company: What the other metrics of its machine say.
        expected: What the reference expected of it.
    """
    is_open = regime.weight > 0
    usual = abs(expected.off) < config.trigger * expected.scale
    young = is_young(config, regime, current.seen)
    foreseen = usual and (young or company.settles)
    if foreseen:  # the experts have yet to learn it: what the reference expects is no news
        current = CurrentValue(
            current.place,
            0.0,
            current.bar,
            current.counts,
            current.seen,
            current.time,
            current.valid,
            current.outside,
            current.at_hour,
            current.visits,
        )
    explained = foreseen or (usual and is_open and regime.serious)
    notable = abs(expected.off) >= min(config.start, config.jump) * expected.scale and current.seen >= detector.learning
    former = _NONE if young else slot_left(config, regime, current.seen, company.left)
    if current.valid and (notable or is_open or former >= 0):
        return _weigh_incident(config, detector, regime, current, company, former, expected, explained)
    return Decision(
        kind=_NONE,
        turned=_NONE,
        since=NEVER,
        inside=False,
        loud=False,
        explained=explained,
        expected=expected,
        concerned=False,
        dead=False,
        calm=True,
        returned=False,
        given_up=False,
        level=0.0,
        recalled=False,
        switch=False,
        slot=0,
        shift=0.0,
        back=(0.0, 0.0, 0.0, 0.0),
        incident=no_incident(),
        announced=False,
    )


@kernel
def _weigh_incident(
    config: RegimesConfig,
    detector: DetectorConfig,
    regime: Record,
    current: CurrentValue,
    company: Company,
    former: int,
    expected: Expected,
    explained: bool,
) -> Decision:
    """What a value says of an incident that is open, or may begin with it, or of its return to ``former``."""
    gains = recall_gains(config, regime, current, expected)
    reminds = (
        max(gains[0], gains[1], gains[2], gains[3]) >= current.counts * config.recall_most
        and abs(expected.off) >= config.jump * expected.scale
    )
    step = np.float32(current.place) - regime.last
    incident = go_on(config, detector.half, regime, current, expected, step, is_grown(regime), reminds)
    dead = is_dead(config, current, expected)
    alive = is_alive(config, incident, current, expected, dead)
    back = recalled_so_far(regime, incident.was, gains)
    outcome = outcome_of(config, regime, current, company, former, expected, incident, alive, gains, back)

    was, is_open, recalled = incident.was, incident.weight > 0, outcome.recalled
    switch = outcome.accepted or recalled
    stays = is_open and not switch and not outcome.given_up
    kind, turned, news = _kinds_of(config, regime, current, expected, incident, outcome)
    announced = incident.announced or outcome.changed
    loud = news and (was or is_open or recalled)
    explained = explained or (is_open and (announced or switch))
    dead = dead and stays
    calm = not is_open or (not was and abs(expected.off) < config.trigger * expected.scale)
    returned = was and not is_open and incident.challenger.number > detector.calm
    present = float(regime.shift[regime.active])
    moved = outcome.shift - present if recalled else incident.challenger.mean
    slot = outcome.slot if recalled else place_for_new(regime)
    since = incident.onset if was or is_open else company.since if recalled else NEVER
    return Decision(
        kind=kind,
        turned=turned,
        since=since,
        inside=stays,
        loud=loud,
        explained=explained,
        expected=expected,
        concerned=True,
        dead=dead,
        calm=calm,
        returned=returned,
        given_up=outcome.given_up,
        level=current.place - expected.off + moved,
        recalled=recalled,
        switch=switch,
        slot=slot,
        shift=outcome.shift,
        back=back,
        incident=incident,
        announced=announced,
    )


@kernel
def _kinds_of(
    config: RegimesConfig,
    regime: Record,
    current: CurrentValue,
    expected: Expected,
    incident: Incident,
    outcome: Outcome,
) -> tuple[int, int, bool]:
    """The kind of the value, what the incident turned out to be, and whether its end is news; see `Decision`."""
    loud, usual = is_alarm(incident.peak, current.bar), abs(expected.off) < config.trigger * expected.scale
    daily = _is_daily(current, expected, incident.challenger)
    news = loud or (outcome.recalled and regime.habit < config.habit and (regime.said or not daily))
    is_open, kind, turned = incident.weight > 0, _NONE, _NONE
    if (outcome.accepted or outcome.recalled) and news:
        kind = _NEW_NORMAL
    elif incident.was and not is_open and loud and usual:
        kind = _RECOVERED
    if outcome.changed and loud:
        turned = _STATE_CHANGE
    elif is_open and loud and not is_alarm(max(current.score, regime.peak), current.bar):  # it adds up to one
        turned = _ANOMALY
    return kind, turned, news


@kernel
def _is_daily(current: CurrentValue, expected: Expected, challenger: Challenger) -> bool:
    """Whether a value lies where it did at this hour of the days before, and so is no return of a regime.

    What was learned of the hour since the onset itself must not say so: it is a small part of all.
    """
    miss = abs(current.place - current.at_hour)
    return current.visits >= _VISITS * challenger.number and miss <= _NEAR * abs(expected.off)


@kernel
def learn_regime(
    config: RegimesConfig, detector: DetectorConfig, regime: Record, place: float, step: Step, decision: Decision
) -> None:
    """Writes what `decide` found of a value that is there.

    Args:
        config: The constants.
        detector: Those of the detector.
        regime: The columns of regimes; changed.
        place: Where the value lies on the axis.
        step: What is known of the value.
        decision: As from `decide`.
    """
    regime.last = place
    if decision.calm:
        learn_calm(config, detector, regime, decision.expected, step)
    regime.habit *= _KEPT
    if not decision.concerned:
        return
    _write_decision(regime, decision)
    if decision.given_up:
        regime.level += decision.incident.challenger.latest
        regime.drift += decision.incident.challenger.latest
    if decision.switch:
        regime.habit += 1.0 if decision.recalled else 0.0
        switch_to(regime, decision.slot, decision.shift, step.seen)
        regime.said = decision.loud


@kernel
def conclude_regime(config: RegimesConfig, regime: Record, decision: Decision) -> None:
    """Lets an open incident come to its end at a usual value that must not be learned from; nothing else is changed.

    Args:
        config: The constants.
        regime: The columns of regimes; changed.
        decision: As from `decide`.
    """
    usual = abs(decision.expected.off) < config.trigger * decision.expected.scale
    if decision.incident.was and usual and not (decision.switch or decision.given_up):
        _write_decision(regime, decision)


@kernel
def _write_decision(regime: Record, decision: Decision) -> None:
    """Remembers the incident, and what speaks for kept regimes, while it stays open."""
    inside = decision.inside
    write_incident(regime, decision.incident if inside else no_incident(), inside and decision.announced)
    for slot in range(SLOTS):
        regime.back[slot] = decision.back[slot] if inside else 0.0


@kernel
def left_before(regime: Record, decision: Decision, seen: float) -> float:
    """How many values ago the series left the kept regime that is back; -1: none is."""
    return left_ago(regime, decision.slot, seen) if decision.switch and decision.recalled else -1.0


@kernel
def open_since(regime: Record) -> int:
    """When the open incident began, reported or not; -1: none is open."""
    return regime.onset if regime.weight > 0 else NEVER


def onset(state: Rows) -> Ints:
    """`open_since` of several series, shape (n,)."""
    return np.where(state["weight"] > 0, state["onset"].astype(np.int64), NEVER)


def peak(state: Rows) -> Array:
    """What the open incidents scored at most; 0: none is; shape (n,)."""
    return np.where(state["weight"] > 0, state["peak"], 0.0)


def close(state: Rows) -> None:
    """Ends the incidents: what is there is typical by now."""
    reference.move(state, np.where(state["weight"] > 0, state["latest"], 0.0).astype(np.float64))
    for name, column in incidents.new_state(len(state.rows)).items():
        state[name] = column
    state["back"] = np.zeros_like(state["back"])
