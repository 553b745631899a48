"""Which regime a series is in: changes of state, and old states that are back.

Kinds only: what is found here changes neither what the experts learn nor the score, with one exception. When an outage
(an incident with values next to nothing, of six windows or more) ends by return, the detector's experts are again as
they were before it: see docs/model.md, "An outage is unlearned when it ends". Scores up to that return are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.arrays import Array, Columns, Flags, Ints, Rows
from models.evidence.repeats import NEVER
from models.regimes import incident as incidents
from models.regimes.axis import value
from models.regimes.challenger import heavy
from models.regimes.config import RegimesConfig
from models.regimes.incident import Found, Incident, News
from models.regimes.kept import Kept, Known
from models.regimes.reference import Expected, Reference
from models.verdicts import Kind

_LONG_AGO = -1e9


class Next(NamedTuple):
    """What becomes of some incidents.

    Args:
        at: Which of the n values they are of, shape (m,), as all others.
        kind: Codes of `Kind`; -1: no news.
        turned: Codes of `Kind`: what the incident turned out to be, whatever this value is; -1: no news.
        since: Onset; -1: there is none.
        loud: Whether it is told of, before or with this value.
        quiet: Whether it has been announced as a change: it is no longer an anomaly.
        dead: Whether it is open after it and the value is next to nothing.
        serious: Whether a value of it lay where no usual one does.
        slight: Whether it begins with a value that might be usual.
        stays: Whether it is open after it.
        returned: Whether it was one of some windows, and is over since values are again as expected.
        given_up: Whether it is over since it lasts too long.
        level: Where values have been since it began, on the axis, as of places.
        recalled: Whether a kept regime is back.
        switch: Whether another regime holds from the next value on: ``slot``, at ``shift``.
        slot: See there.
        shift: See there.
        known: The kept regimes.
        incident: The incident.
    """

    at: Ints
    kind: Ints
    turned: Ints
    since: Ints
    loud: Flags
    quiet: Flags
    dead: Flags
    serious: Flags
    slight: Flags
    stays: Flags
    returned: Flags
    given_up: Flags
    level: Array
    recalled: Flags
    switch: Flags
    slot: Ints
    shift: Array
    known: Known
    incident: Incident


class Decision(NamedTuple):
    """What regimes say of n values.

    Args:
        kind: Codes of `Kind`, where they are news of a regime or the end of an incident; else -1; shape (n,).
        turned: Codes of `Kind`: what the incident turned out to be, said of its onset; else -1; shape (n,).
        since: Onset of the incident; -1 where there is none; shape (n,).
        inside: Whether an incident is open after the value, shape (n,).
        open: Whether one is that is told of, shape (n,).
        closed: Whether one that is told of ends with the value, shape (n,).
        explained: Whether the value is no anomaly, whatever its score, shape (n,).
        told: What the reference expected.
        after: For `Regimes.learn`.
    """

    kind: Ints
    turned: Ints
    since: Ints
    inside: Flags
    open: Flags
    closed: Flags
    explained: Flags
    told: Expected
    after: Next

    def context(self, found: Found, unit: Array, told: Flags) -> dict[str, Array]:
        """What is said of a change beside a verdict, by name, NaN where there is none; each of shape (n,).

        The values ``before`` it and the ``level`` since, and ``known``: 1 where that is one of a regime before.

        Args:
            found: As of `Regimes.decide`.
            unit: Of the axis, shape (n,).
            told: Where a change is announced, shape (n,).
        """
        before, level, known = np.full((3, len(unit)), np.nan)
        at, after = self.after.at[told[self.after.at]], told[self.after.at]
        if len(at):
            before[at] = value(found.place[at] - self.told.off[at], unit[at])
            level[at] = value(self.after.level[after], unit[at])
            known[at] = self.after.recalled[after]
        return {"before": before, "level": level, "known": known}


class Regimes:
    """Tells a change of state from a surprise that ends, and knows an old state again.

    Args:
        config: The constants.
        half: Evidence that scores 50, in nats.
        zone: IANA name of the time zone in which hours of the day are counted.

    Sources: R. E. Kass, A. E. Raftery, Bayes factors, JASA 90 (1995); E. S. Page, Continuous inspection schemes,
    Biometrika 41 (1954).
    """

    def __init__(self, config: RegimesConfig, half: float, zone: str) -> None:
        self.config, self.half = config, half
        self.kept = Kept(config.recall_most, config.tolerance)
        self.reference = Reference(config, zone)
        self._nothing = self._of_none()

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known."""
        columns: Columns = {"last": np.zeros(n, np.float32)}
        columns |= {"settling": np.full(n, _LONG_AGO, np.float32)}
        return columns | self.reference.new_state(n) | incidents.new_state(n) | self.kept.new_state(n)

    def same(self, state: Rows, found: Found) -> Flags:
        """Whether values are those before, to the precision in which they are remembered, shape (n,)."""
        result: Flags = found.place.astype(np.float32) == state["last"]
        return result

    def decide(self, state: Rows, found: Found, threshold: float) -> Decision:
        """What kind of news the values are, beyond their score; changes nothing.

        Args:
            state: The columns of regimes.
            found: What is known of the values.
            threshold: record_score from which a regime or an incident is announced.
        """
        n, config = len(found.place), self.config
        told = self.reference.expect(state, found.place, found.time, found.floor, found.seen)
        surprising = np.abs(told.off) >= config.trigger * told.scale
        is_open = state["weight"] > 0
        notable = np.abs(told.off) >= min(config.start, config.recall_size) * told.scale
        at = np.flatnonzero(found.valid & (notable & (found.seen >= config.young) | is_open))
        after = self._go_on(state, at, found, told, threshold) if len(at) else self._nothing
        kind, turned, since = np.full(n, -1), np.full(n, -1), np.full(n, NEVER)
        kind[at], turned[at], since[at] = after.kind, after.turned, after.since
        inside, told_of = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        inside[at], told_of[at] = after.stays, after.loud
        explained = ~surprising & (
            (is_open & (state["serious"] > 0)) | (found.seen - state["settling"] < config.settling)
        )
        explained[at] |= after.quiet
        return Decision(
            kind=kind,
            turned=turned,
            since=since,
            inside=inside,
            open=inside & told_of,
            closed=told_of & ~inside,
            explained=explained,
            told=told,
            after=after,
        )

    def _of_none(self) -> Next:
        state, none = Rows(self.new_state(1), np.zeros(0, np.int64), ""), np.zeros(0)
        found = Found(none, none, none, none, state.rows, none, none > 0, none > 0)
        told = self.reference.expect(state, none, state.rows, none, none)
        return self._go_on(state, state.rows, found, told, 0.0)

    def _go_on(self, state: Rows, at: Ints, found: Found, told: Expected, threshold: float) -> Next:
        config, some = self.config, Rows(state.state, state.rows[at], state.prefix)
        part = Found(*(array[at] for array in found))  # type: ignore[arg-type]
        own = Expected(*(array[..., at] for array in told))  # type: ignore[arg-type]
        step = part.place.astype(np.float32) - some["last"]
        known = self.kept.read(some)
        gain = self.kept.gain(known, own.off, own.scale, heavy(own.off / own.scale))
        reminds = (gain.max(axis=1) >= config.recall_most) & (np.abs(own.off) >= config.recall_size * own.scale)
        creeping = self.reference.is_grown(some)
        incident, news = incidents.go_on(config, self.half, some, part, own, step, creeping=creeping, reminds=reminds)
        is_open, challenger = incident.weight > 0, incident.challenger
        dead = incidents.is_dead(config, part, own)
        alive = incidents.is_alive(config, incident, part, own, dead)

        back = np.where(news.was[:, None], known.back, 0.0) + gain
        best = back.argmax(axis=1)
        far = np.abs(challenger.mean) >= config.size * own.scale
        here = np.arange(len(at))
        present = known.shift[here, known.active]
        miss = np.abs(present + challenger.mean - known.shift[here, best])
        fits = miss <= config.recall_fit * own.scale + config.tolerance * np.abs(challenger.mean)
        recalled = is_open & incident.abrupt & alive & fits & (back[here, best] >= config.recall)
        settled = is_open & far & ~recalled & alive & self._is_level(incident, news, own)
        changed = settled & ~incident.told & (incident.weight >= config.change)
        accepted = settled & incident.told & (incident.weight >= config.accept)
        switch = accepted | recalled
        given_up = is_open & ~switch & alive & (challenger.number >= config.patience)
        stays = is_open & ~switch & ~given_up

        loud = incident.peak >= threshold
        usual = np.abs(own.off) < config.trigger * own.scale
        kind = np.where(news.was & ~is_open & loud & usual, Kind.RECOVERED.code, -1)
        adds_up = is_open & loud & (part.score < threshold) & (some["peak"] < threshold)
        turned = np.where(adds_up, Kind.ANOMALY.code, -1)
        turned = np.where(changed & loud, Kind.STATE_CHANGE.code, turned)
        kind = np.where((accepted & loud) | recalled, Kind.NEW_NORMAL.code, kind)
        slot = np.where(recalled, best, self.kept.place_for_new(known))
        shift = np.where(recalled, known.shift[here, best], present + challenger.mean)
        incident = incident._replace(told=incident.told | changed)
        return Next(
            at=at,
            kind=kind,
            turned=turned,
            since=np.where(news.was | is_open, incident.onset, NEVER),
            loud=(loud & (news.was | is_open)) | recalled,
            quiet=is_open & (incident.told | switch),
            dead=dead & stays,
            serious=incident.serious | (some["serious"] > 0),
            slight=~news.was & usual,
            stays=stays,
            returned=news.was & ~is_open & (challenger.number >= config.lasting),
            given_up=given_up,
            level=part.place - own.off + np.where(recalled, shift - present, challenger.mean),
            recalled=recalled,
            switch=switch,
            slot=slot,
            shift=shift,
            known=known._replace(back=back),
            incident=incident,
        )

    def learn(self, state: Rows, found: Found, decision: Decision) -> None:
        """Writes what `decide` found, of values that are all there."""
        after = decision.after
        state["last"] = found.place
        calm = np.ones(len(found.place), np.bool_)
        calm[after.at] = after.slight | ~(after.stays | after.switch | after.given_up)
        self.reference.learn(state, decision.told, found.gap, found.seen, calm)
        if not len(after.at):
            return

        some = Rows(state.state, state.rows[after.at], state.prefix)
        for name, column in after.incident.columns().items():
            some[name] = np.where(after.stays, column, NEVER if name == "onset" else 0)
        some["back"] = np.where(after.stays[:, None], after.known.back, 0.0)
        seen = found.seen[after.at]
        over = ~after.stays & (after.since != NEVER) & (after.serious | after.switch | after.given_up)
        some["settling"] = np.where(over, seen, some["settling"])
        if after.given_up.any():
            self.reference.move(some, np.where(after.given_up, after.incident.challenger.latest, 0.0))
        if after.switch.any():
            self.kept.switch(some, after.known, after.slot, after.shift, seen, after.switch)
            some["now"] = np.where(after.switch, after.shift, some["now"])

    def onset(self, state: Rows) -> Ints:
        """When the open incidents began; -1: none is; shape (n,)."""
        return np.where(state["weight"] > 0, state["onset"].astype(np.int64), NEVER)

    def peak(self, state: Rows) -> Array:
        """What the open incidents scored at most; 0: none is; shape (n,)."""
        return np.where(state["weight"] > 0, state["peak"], 0.0)

    def close(self, state: Rows) -> None:
        """Ends the incidents: what is there is typical by now."""
        self.reference.move(state, np.where(state["weight"] > 0, state["latest"], 0.0).astype(np.float64))
        for name, column in incidents.new_state(len(state.rows)).items():
            state[name] = column
        state["back"] = np.zeros_like(state["back"])

    def _is_level(self, incident: Incident, news: News, told: Expected) -> Flags:
        """Whether values have been at a level of their own since an abrupt onset, and this one is."""
        challenger = incident.challenger
        slack = self.config.steady * np.abs(challenger.mean) + told.scale
        steady = np.abs(challenger.latest - challenger.mean) <= slack
        return incident.abrupt & steady & (news.gain > 0)
