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
from models.evidence.combine import is_alarm
from models.evidence.repeats import NEVER
from models.experts.base import Step
from models.kernels import kernel
from models.numbers.arrays import Array, Columns, Ints, Rows
from models.records import Record
from models.regimes import incident as incidents
from models.regimes import kept, reference
from models.regimes.challenger import Challenger
from models.regimes.company import Company
from models.regimes.config import RegimesConfig
from models.regimes.incident import Found, Incident, go_on, is_alive, is_dead, is_level, no_incident, write_incident
from models.regimes.kept import SLOTS, is_young, left_ago, place_for_new, recall_gain, slot_left, switch_to
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
        loud: Whether it is told of, before or with this value.
        explained: Whether the value is no anomaly, whatever its score.
        told: What the reference expected.
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
    """

    kind: int
    turned: int
    since: int
    inside: bool
    loud: bool
    explained: bool
    told: Expected
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
    found: Found,
    company: Company,
    told: Expected,
) -> Decision:
    """What kind of news a value is, beyond its score; changes nothing.

    Args:
        config: The constants.
        detector: Those of the detector.
        regime: The columns of regimes.
        found: What is known of the value.
        company: What the other metrics of its machine say.
        told: What the reference expected of it.
    """
    is_open = regime.weight > 0
    usual = abs(told.off) < config.trigger * told.scale
    young = is_young(config, regime, found.seen)
    foreseen = usual and (young or company.settles)
    if foreseen:  # the experts have yet to learn it: what the reference expects is no news
        found = Found(
            found.place,
            0.0,
            found.bar,
            found.counts,
            found.seen,
            found.time,
            found.valid,
            found.outside,
            found.at_hour,
            found.visits,
        )
    explained = foreseen or (usual and is_open and regime.serious)
    notable = abs(told.off) >= min(config.start, config.jump) * told.scale and found.seen >= detector.learning
    former = _NONE if young else slot_left(config, regime, found.seen, company.left)
    if found.valid and (notable or is_open or former >= 0):
        return _weigh_incident(config, detector, regime, found, company, former, told, explained)
    return Decision(
        kind=_NONE,
        turned=_NONE,
        since=NEVER,
        inside=False,
        loud=False,
        explained=explained,
        told=told,
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
    )


@kernel
def _weigh_incident(
    config: RegimesConfig,
    detector: DetectorConfig,
    regime: Record,
    found: Found,
    company: Company,
    former: int,
    told: Expected,
    explained: bool,
) -> Decision:
    """What a value says of an incident that is open, or may begin with it, or of its return to ``former``."""
    gains = (
        found.counts * recall_gain(config, regime, 0, told.off, told.scale),
        found.counts * recall_gain(config, regime, 1, told.off, told.scale),
        found.counts * recall_gain(config, regime, 2, told.off, told.scale),
        found.counts * recall_gain(config, regime, 3, told.off, told.scale),
    )
    reminds = (
        max(gains[0], gains[1], gains[2], gains[3]) >= found.counts * config.recall_most
        and abs(told.off) >= config.jump * told.scale
    )
    step = np.float32(found.place) - regime.last
    incident = go_on(config, detector.half, regime, found, told, step, is_grown(regime), reminds)
    was, is_open, challenger = incident.was, incident.weight > 0, incident.challenger
    dead = is_dead(config, found, told)
    alive = is_alive(config, incident, found, told, dead)

    back = (
        (float(regime.back[0]) if was else 0.0) + gains[0],
        (float(regime.back[1]) if was else 0.0) + gains[1],
        (float(regime.back[2]) if was else 0.0) + gains[2],
        (float(regime.back[3]) if was else 0.0) + gains[3],
    )
    best = 0
    for slot in range(1, SLOTS):
        if back[slot] > back[best]:
            best = slot
    present = float(regime.shift[regime.active])
    miss = abs(present + challenger.mean - float(regime.shift[best]))
    fits = miss <= config.recall_fit * told.scale + config.tolerance * abs(challenger.mean)
    level = is_level(config, incident, told)
    few = challenger.number * found.counts * config.recall_most < config.recall
    joins = company.accepts and was and is_open and alive and level and not few
    likely = back[best] > 0 if joins else back[best] >= config.recall
    recalled = is_open and incident.abrupt and alive and fits and likely
    if former >= 0 and not recalled and alive and gains[former] > 0:
        best, recalled = former, True
    recall = float(regime.shift[best])
    far = abs(challenger.mean) >= config.start * told.scale
    settled = is_open and far and not recalled and alive and level
    changed = settled and not incident.told and incident.weight >= config.change
    accepted = (settled and incident.told and incident.weight >= config.change) or (joins and not recalled)
    switch = accepted or recalled
    given_up = is_open and not switch and alive and challenger.number >= config.patience
    stays = is_open and not switch and not given_up

    loud, usual = is_alarm(incident.peak, found.bar), abs(told.off) < config.trigger * told.scale
    kind = turned = _NONE
    news = loud or (
        recalled and regime.habit < config.habit and (regime.said or not _is_daily(found, told, challenger))
    )
    if (accepted or recalled) and news:
        kind = _NEW_NORMAL
    elif was and not is_open and loud and usual:
        kind = _RECOVERED
    if changed and loud:
        turned = _STATE_CHANGE
    elif is_open and loud and not is_alarm(max(found.score, regime.peak), found.bar):  # it adds up to one
        turned = _ANOMALY
    slight = not was and usual
    incident = Incident(
        incident.weight,
        incident.strength,
        incident.peak,
        incident.onset,
        incident.same,
        incident.told or changed,
        incident.serious,
        incident.abrupt,
        incident.evident,
        challenger,
        was,
        incident.gain,
    )
    shift = recall if recalled else present + challenger.mean
    since = incident.onset if was or is_open else company.since if recalled else NEVER
    told_of = news and (was or is_open or recalled)
    announced = is_open and (incident.told or switch)
    return Decision(
        kind,
        turned,
        since,
        stays,
        told_of,
        explained or announced,
        told,
        True,
        dead and stays,
        slight or not is_open,
        was and not is_open and challenger.number > detector.calm,
        given_up,
        found.place - told.off + (shift - present if recalled else challenger.mean),
        recalled,
        switch,
        best if recalled else place_for_new(regime),
        shift,
        back,
        incident,
    )


@kernel
def _is_daily(found: Found, told: Expected, challenger: Challenger) -> bool:
    """Whether a value lies where it did at this hour of the days before, and so is no return of a regime.

    What was learned of the hour since the onset itself must not say so: it is a small part of all.
    """
    miss = abs(found.place - found.at_hour)
    return found.visits >= _VISITS * challenger.number and miss <= _NEAR * abs(told.off)


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
        learn_calm(config, detector, regime, decision.told, step)
    regime.habit *= _KEPT
    if not decision.concerned:
        return
    if decision.inside:
        write_incident(regime, decision.incident)
    else:
        write_incident(regime, no_incident())
    for slot in range(SLOTS):
        regime.back[slot] = decision.back[slot] if decision.inside else 0.0
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
    usual = abs(decision.told.off) < config.trigger * decision.told.scale
    if decision.incident.was and usual and not (decision.switch or decision.given_up):
        write_incident(regime, decision.incident if decision.inside else no_incident())
        for slot in range(SLOTS):
            regime.back[slot] = decision.back[slot] if decision.inside else 0.0


@kernel
def left_before(regime: Record, decision: Decision, seen: float) -> float:
    """How many values ago the series left the kept regime that is back; -1: none is."""
    return left_ago(regime, decision.slot, seen) if decision.switch and decision.recalled else -1.0


@kernel
def open_since(regime: Record) -> int:
    """When the open incident began, told of or not; -1: none is open."""
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
