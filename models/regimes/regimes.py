"""Which regime a series is in: changes of state, and old states that are back.

A regime is a shift on the axis of `models.regimes.axis`. Values are brought back to the first regime before anything
else judges them, so that all that was learned holds in every regime, and a return costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows, clamp
from models.evidence.combine import score
from models.evidence.repeats import NEVER
from models.experts.log_level import unit_of
from models.regimes import incident as incidents
from models.regimes.axis import moved
from models.regimes.config import RegimesConfig
from models.regimes.incident import Incident, News, Surprise
from models.regimes.kept import Kept, Known
from models.verdicts import Kind

_NEW = -1e9
"""A series is at home in its first regime."""


class _Next(NamedTuple):
    """What becomes of the rows ``at``: where the incident stays open, and where which regime holds from now on."""

    at: Ints
    stays: Flags
    switch: Flags
    slot: Ints
    shift: Array
    known: Known
    incident: Incident


class Decision(NamedTuple):
    """What regimes say of n values.

    Args:
        kind: Codes of `Kind`, where they are news of a regime or the end of an incident; else -1; shape (n,).
        since: Onset of the incident; -1 where there is none; shape (n,).
        told: Whether the incident has been announced as a change: it is no longer an anomaly; shape (n,).
        hold: Share of the usual weight with which a value is to be learned, shape (n,).
        pending: Whether it is open which expert is right: what a change does to the value says nothing of that; (n,).
        switched: Whether another regime holds from the next value on, shape (n,).
        after: For `Regimes.learn`.
    """

    kind: Ints
    since: Ints
    told: Flags
    hold: Array
    pending: Flags
    switched: Flags
    after: _Next


class Regimes:
    """Tells a change of state from a surprise that ends, and knows an old state again.

    Args:
        config: The constants.
        half: Evidence that scores 50, in nats.

    Sources: R. E. Kass, A. E. Raftery, Bayes factors, JASA 90 (1995); E. S. Page, Continuous inspection schemes,
    Biometrika 41 (1954).
    """

    def __init__(self, config: RegimesConfig, half: float) -> None:
        self.config, self.half = config, half
        self.kept = Kept(config.recall_most, config.tolerance)

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        columns: Columns = {"now": np.zeros(n, np.float32), "entered": np.full(n, _NEW, np.float32)}
        columns |= {"unit": np.zeros(n), "born": np.full(n, NEVER, np.int64)}
        return columns | incidents.new_state(n) | self.kept.new_state(n)

    def to_first(self, state: Rows, value: Array) -> Array:
        """Values as they would be in the first regime."""
        return self._moved(state, value, -1.0)

    def from_first(self, state: Rows, value: Array) -> Array:
        """Inverse of `to_first`."""
        return self._moved(state, value, 1.0)

    def at_home(self, state: Rows, seen: Array) -> Array:
        """How far the series has settled in its present regime, in [0, 1]; ``seen``: values learned so far."""
        return clamp((seen - state["entered"]) / self.config.settling, 0.0, 1.0)

    def decide(self, state: Rows, found: Surprise, threshold: float) -> Decision:
        """What kind of news the values are, beyond their score; changes nothing.

        Args:
            state: The columns of regimes.
            found: What the detector found.
            threshold: record_score from which a regime or an incident is announced.
        """
        n, config = len(found.value), self.config
        triggered = config.on & found.valid & (found.point >= config.trigger) & (found.seen >= config.young)
        at = np.flatnonzero(triggered | (found.valid & (state["weight"] > 0)))
        some = Rows(state.state, state.rows[at], state.prefix)
        part = Surprise(*(array[at] for array in found))  # type: ignore[arg-type]
        creeping = part.time - some["born"].astype(np.int64) >= config.mature
        incident, news = incidents.go_on(config, some, part, _unit(some), triggered[at], creeping)
        is_open, challenger = incident.weight > 0, incident.challenger
        far = np.abs(challenger.mean) >= config.size * news.scale

        known = self.kept.read(some)
        back = self.kept.compare(
            known._replace(back=np.where(news.was[:, None], known.back, 0.0)), news.off, news.scale, news.incumbent
        )
        best = back.argmax(axis=1)
        recalled = is_open & incident.abrupt & (back.max(axis=1) >= config.recall)
        settled = is_open & far & ~recalled & self._is_level(incident, news, part)
        changed = settled & ~incident.told & (incident.weight >= config.change)
        accepted = settled & incident.told & (incident.weight >= config.accept)
        switch = accepted | recalled
        stays = is_open & ~switch

        undecided = stays & (challenger.number <= config.patience)
        kind, since, hold = np.full(n, -1), np.full(n, NEVER), np.ones(n)
        told, pending, switched = np.zeros((3, n), np.bool_)
        since[at] = np.where(news.was | is_open, incident.onset, NEVER)
        told[at] = (incident.told | changed | switch) & is_open
        hold[at] = np.where(undecided & far & incident.abrupt, config.held, 1.0)
        hold[at] = np.where((undecided & far & (incident.weight >= config.firm)) | switch, 0.0, hold[at])
        pending[at] = (undecided & (incident.abrupt | far)) | switch
        switched[at] = switch
        loud = incident.peak >= threshold
        strong = loud | (score(np.maximum(incident.strength, 0.0), self.half) >= threshold)
        kind[at] = np.where(news.was & ~is_open & loud, Kind.RECOVERED.code, -1)
        kind[at] = np.where(changed & strong, Kind.STATE_CHANGE.code, kind[at])
        kind[at] = np.where((accepted & strong) | recalled, Kind.NEW_NORMAL.code, kind[at])

        present = known.shift[np.arange(len(at)), known.active]
        slot = np.where(recalled, best, self.kept.place_for_new(known))
        shift = np.where(recalled, known.shift[np.arange(len(at)), best], present + challenger.mean)
        incident = incident._replace(told=incident.told | changed)
        after = _Next(at, stays, switch, slot, shift, known._replace(back=back), incident)
        return Decision(kind, since, told, hold, pending, switched, after)

    def learn(self, state: Rows, found: Surprise, decision: Decision) -> None:
        """Writes what `decide` found."""
        unit, born = state["unit"], state["born"]
        state["unit"] = np.where((unit > 0) | ~found.valid, unit, unit_of(found.value))
        state["born"] = np.where((born != NEVER) | ~found.valid, born, found.time)
        after = decision.after
        some = Rows(state.state, state.rows[after.at], state.prefix)
        for name, column in after.incident.columns().items():
            some[name] = np.where(after.stays, column, NEVER if name == "onset" else 0)
        some["back"] = np.where(after.stays[:, None], after.known.back, 0.0)
        if after.switch.any():
            seen = found.seen[after.at]
            self.kept.switch(some, after.known, after.slot, after.shift, seen, after.switch)
            some["now"] = np.where(after.switch, after.shift, some["now"])
            some["entered"] = np.where(after.switch, seen, some["entered"])

    def close(self, state: Rows) -> None:
        """Ends the incidents: what is there is typical by now."""
        for name, column in incidents.new_state(len(state.rows)).items():
            state[name] = column
        state["back"] = np.zeros_like(state["back"])

    def _is_level(self, incident: Incident, news: News, found: Surprise) -> Flags:
        """Whether values have been at a level of their own since an abrupt onset, and this one is."""
        challenger = incident.challenger
        slack = self.config.steady * np.abs(challenger.mean) + news.scale
        steady = np.abs(challenger.latest - challenger.mean) <= slack
        return incident.abrupt & steady & (news.gain > 0) & incidents.is_alive(self.config, incident, found)

    def _moved(self, state: Rows, value: Array, sign: float) -> Array:
        shift = state["now"]
        at = np.flatnonzero(shift)
        if not len(at):
            return value
        result = value.copy()
        unit = _unit(Rows(state.state, state.rows[at], state.prefix))
        result[at] = moved(value[at], sign * shift[at].astype(np.float64), unit)
        return result


def _unit(state: Rows) -> Array:
    unit = state["unit"]
    return np.where(unit > 0, unit, 1.0)
