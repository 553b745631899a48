"""Which regime a series is in: incidents, challengers of the present regime, and old ones that are back.

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
from models.regimes.axis import moved, place
from models.regimes.challenger import Challenger, heavy
from models.regimes.config import RegimesConfig
from models.regimes.kept import Kept, Known
from models.verdicts import Kind

_SIDE = 3.29
"""Half of the band that holds 99.9 % of a normal distribution, in standard deviations."""

_FINEST = 1e-6


class Surprise(NamedTuple):
    """What the detector found of n values, in units of the first regime; all of shape (n,).

    Args:
        value: The values.
        lower: Lower end of the band.
        typical: What was expected.
        upper: Upper end of the band.
        point: Point evidence in nats.
        change: Change evidence in nats.
        score: `record_score` before kinds.
        resolution: Differences below this mean nothing.
        seen: Values learned so far.
        time: End of the window, epoch milliseconds.
        valid: Whether there is a value.
    """

    value: Array
    lower: Array
    typical: Array
    upper: Array
    point: Array
    change: Array
    score: Array
    resolution: Array
    seen: Array
    time: Ints
    valid: Flags


class _Open(NamedTuple):
    """What becomes of the incidents of the rows ``at``."""

    at: Ints
    open: Flags
    switch: Flags
    slot: Ints
    shift: Array
    known: Known
    columns: dict[str, Array | Ints]


class Decision(NamedTuple):
    """What regimes say of n values.

    Args:
        kind: Codes of `Kind`, where they are news of a regime or the end of an incident; else -1; shape (n,).
        since: Onset of the incident; -1 where there is none; shape (n,).
        told: Whether the incident has been announced as a change: it is no longer an anomaly; shape (n,).
        hold: Share of the usual weight with which a value is to be learned, shape (n,).
        pending: Whether it is open which expert is right: what a change does to the value says nothing of that; (n,).
        switched: Whether another regime holds from the next value on, shape (n,).
        memo: For `Regimes.learn`.
    """

    kind: Ints
    since: Ints
    told: Flags
    hold: Array
    pending: Flags
    switched: Flags
    memo: _Open


class Regimes:
    """Tells a change of state from a surprise that ends, and knows an old state again.

    Args:
        config: The constants.
        half: Evidence that scores 50, in nats.
    """

    def __init__(self, config: RegimesConfig, half: float) -> None:
        self.config, self.half = config, half
        self.kept = Kept(config.recall_most, config.tolerance)

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        numbers = ("now", "weight", "strength", "peak", "count", "mean", "squares", "latest", "last", "same")
        columns: Columns = {name: np.zeros(n, np.float32) for name in numbers}
        columns |= {"unit": np.zeros(n), "born": np.full(n, NEVER, np.int64), "onset": np.full(n, NEVER, np.int64)}
        columns["entered"] = np.full(n, -1e9, np.float32)
        return columns | {name: np.zeros(n, np.bool_) for name in ("told", "abrupt")} | self.kept.new_state(n)

    def to_first(self, state: Rows, value: Array) -> Array:
        """Values as they would be in the first regime."""
        return self._moved(state, value, -1.0)

    def at_home(self, state: Rows, seen: Array) -> Array:
        """How far the series has settled in its present regime, in [0, 1]; ``seen``: values learned so far."""
        return clamp((seen - state["entered"]) / self.config.settling, 0.0, 1.0)

    def from_first(self, state: Rows, value: Array) -> Array:
        """Inverse of `to_first`."""
        return self._moved(state, value, 1.0)

    def _moved(self, state: Rows, value: Array, sign: float) -> Array:
        shift = state["now"]
        at = np.flatnonzero(shift)
        if not len(at):
            return value
        result = value.copy()
        some = Rows(state.state, state.rows[at], state.prefix)
        result[at] = moved(value[at], sign * shift[at].astype(np.float64), some["unit"])
        return result

    def decide(self, state: Rows, found: Surprise, threshold: float) -> Decision:
        """What kind of news the values are, beyond their score; changes nothing.

        Args:
            state: The columns of regimes.
            found: What the detector found.
            threshold: record_score from which a regime or an incident is announced.
        """
        n, config = len(found.value), self.config
        was_open = state["weight"] > 0
        triggered = (found.point >= config.trigger) & (found.seen >= config.young)
        at = np.flatnonzero(found.valid & (was_open | triggered))
        kind, since = np.full(n, -1), np.full(n, NEVER)
        told, switched, pending, hold = *np.zeros((3, n), np.bool_), np.ones(n)
        some = Rows(state.state, state.rows[at], state.prefix)
        part = Surprise(*(array[at] for array in found))
        unit = some["unit"]
        unit = np.where(unit > 0, unit, 1.0)
        z, typical = place(part.value, unit), place(part.typical, unit)
        off = z - typical
        side = np.where(off > 0, place(part.upper, unit) - typical, typical - place(part.lower, unit))
        scale = np.maximum(side / _SIDE, _FINEST)

        jumps = (part.change >= config.abrupt) & triggered[at]
        was_abrupt = some["abrupt"] > 0
        was = was_open[at] & (was_abrupt | ~jumps)  # a jump begins an incident of its own
        creeping = triggered[at] & (part.time - some["born"].astype(np.int64) >= config.mature)
        begins = ~was & (creeping | jumps)
        before = Challenger(*(some[name].astype(np.float64) for name in Challenger._fields))
        incumbent = heavy(off / scale)
        gain = np.where(begins, config.most, before.log_density(off, scale) - incumbent)
        weight = some["weight"] + clamp(gain, config.least, config.most)
        weight = np.where(was | begins, np.minimum(weight, config.cap), 0.0)
        strength = np.where(was, some["strength"], 0.0) + clamp(gain, -config.recall_most, config.recall_most)
        peak = np.maximum(np.where(was, some["peak"], 0.0), part.score)
        after = before.learn(off, config.pace, ~was)
        onset = np.where(was, some["onset"].astype(np.int64), part.time)
        exact = z.astype(np.float32)
        same = np.where(was, some["same"] + (exact == some["last"]), 0.0)

        known = self.kept.read(some)
        known = known._replace(back=np.where(was[:, None], known.back, 0.0))
        back = self.kept.compare(known, off, scale, incumbent)
        best = back.argmax(axis=1)
        is_open = weight > 0
        
        abrupt = np.where(was, was_abrupt, jumps)
        recalled = is_open & abrupt & (back.max(axis=1) >= config.recall)
        distance = np.abs(after.mean)
        far = distance >= config.size * scale
        steady = np.abs(after.latest - after.mean) <= config.steady * distance + scale
        frozen = (same >= 0.8 * (after.count - 1)) & (part.upper - part.lower > 30 * part.resolution)
        dead = np.abs(part.value) <= config.dead * np.abs(part.typical)
        lasts = part.time - onset
        lives = (~dead | (lasts >= config.dead_for)) & (~frozen | (lasts >= config.frozen_for))
        was_told = was & (some["told"] > 0)
        settled = is_open & abrupt & far & steady & lives & ~recalled & (gain > 0)
        changed = settled & ~was_told & (weight >= config.change)
        accepted = settled & was_told & (weight >= config.accept)
        ends = was & ~is_open
        switch = accepted | recalled
        stays = is_open & ~switch

        loud = peak >= threshold
        strong = loud | (score(np.maximum(strength, 0.0), self.half) >= threshold)
        news = np.where(ends & loud, Kind.RECOVERED.code, -1)
        news = np.where(changed & strong, Kind.STATE_CHANGE.code, news)
        news = np.where(accepted & strong | recalled, Kind.NEW_NORMAL.code, news)
        kind[at], since[at] = news, np.where(was | is_open, onset, NEVER)
        told[at] = (was_told | changed | switch) & is_open
        young = stays & (after.count <= config.patience)
        firm = young & far & (weight >= config.firm)
        hold[at] = np.where(firm | switch, config.held, 1.0)
        pending[at] = young & (abrupt | far) | switch
        switched[at] = switch
        present = np.take_along_axis(known.shift, known.active[:, None], axis=1)[:, 0]
        former = np.take_along_axis(known.shift, best[:, None], axis=1)[:, 0]
        slot = np.where(recalled, best, self.kept.place_for_new(known))
        shift = np.where(recalled, former, present + after.mean)
        columns: dict[str, Array | Ints] = {
            "weight": weight, "strength": strength, "peak": peak, "onset": onset, "last": exact, "same": same,
            "told": was_told | changed, "abrupt": abrupt, "back": back, **after._asdict(),
        }  # fmt: skip
        return Decision(kind, since, told, hold, pending, switched, _Open(at, stays, switch, slot, shift, known, columns))

    def learn(self, state: Rows, found: Surprise, decision: Decision) -> None:
        """Writes what `decide` found."""
        unit, born = state["unit"], state["born"]
        state["unit"] = np.where((unit > 0) | ~found.valid, unit, unit_of(found.value))
        state["born"] = np.where((born != NEVER) | ~found.valid, born, found.time)
        memo = decision.memo
        some = Rows(state.state, state.rows[memo.at], state.prefix)
        for name, column in memo.columns.items():
            kept = memo.open.reshape(-1, *([1] * (column.ndim - 1)))
            empty = NEVER if name == "onset" else 0
            some[name] = np.where(kept, column, empty)
        if memo.switch.any():
            self.kept.switch(some, memo.known, memo.slot, memo.shift, found.seen[memo.at], memo.switch)
            some["now"] = np.where(memo.switch, memo.shift, some["now"])
            some["entered"] = np.where(memo.switch, found.seen[memo.at], some["entered"])
