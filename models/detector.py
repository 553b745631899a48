"""The Bayesian online novelty detector: pure scoring, separate learning, vectorised over series.

Knows arrays only: no Spark, no Kafka, no clock. Its state is a dictionary of columns that it is handed each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from models.arrays import LARGEST, SMALLEST, Array, Columns, Flags, Ints, Rows, clamp, prefixed, total
from models.config import DetectorConfig
from models.evidence.change import Change
from models.evidence.combine import combine, score, weigh
from models.evidence.frozen import Frozen
from models.evidence.lingering import Lingering
from models.evidence.point import compress, series_calibration
from models.evidence.record import Range, Record
from models.evidence.repeats import NEVER, Repeats, Unrest
from models.evidence.window import WindowMean
from models.experts.base import Expert, Lesson, Step
from models.experts.days import Days
from models.experts.hour_of_day import HourOfDay
from models.experts.level import Level
from models.experts.log_level import LogLevel, unit_of
from models.families.choice import Choice, Family
from models.families.stack import Part, Stack
from models.families.suited import About, Suited
from models.feedback import FEW, Feedback
from models.kinds import Judged, Kinds
from models.mixture import Mixture, reweigh
from models.past import Lived, Past
from models.peers import Newcomers
from models.regimes.axis import finest, place
from models.regimes.config import RegimesConfig
from models.regimes.incident import Found
from models.regimes.regimes import Decision, Regimes
from models.verdicts import Kind, SeriesVerdicts

_COARSE = 1e-6
"""Differences below this share of the level mean nothing."""

_PERSISTENT, _LASTING = 5.6, 6.9
"""Means of point evidence over the window from which a new level begins to be believed, and is."""

_TRACE = 1e-100
"""A bound below this is a trace of the prior of a series that was always 0: it is 0."""


_UNLEARNED: dict[str, type[np.floating[Any]]] = {
    **{f"{name}.{column}": np.float64 for name in ("level", "log_level") for column in ("mean", "squares")},
    **{f"{name}.count": np.float32 for name in ("level", "log_level")},
    **{f"{name}.log_weight": np.float32 for name in ("level", "log_level", "hour")},
    **{f"record.{end}": np.float64 for end in ("low", "high")},
}
"""What is again as it was before an outage once that is over, and how it is kept meanwhile."""

_CONTEXT = (
    *("values", "watched", "lowest", "highest", "run", "run_for", "ordinary", "same_for", "days"),
    *("before", "level", "known"),
)
"""Names in the context of a verdict, see `Past.context` and `Decision.context`; ``days``: see `Days.several`."""

_KEPT, _NOTHING = "before.", "before.level.count"
"""State columns: the prefix of what is kept from before a change, and its count (below 0: nothing is kept)."""


@dataclass(frozen=True)
class _Judgement:
    """A verdict and all that learning wants of the way to it."""

    verdicts: SeriesVerdicts
    valid: Flags
    about: About
    step: Step
    mixture: Mixture
    memos: list[Any]
    extent: Range
    lived: Lived
    level: Array
    point: tuple[Array, Any]
    window: tuple[Array, Any]
    change: tuple[Any, Any]
    weight: Array
    unrest: Unrest
    lingering: Array
    band: tuple[Array, Array, Array]
    found: Found
    decision: Decision


class Detector:
    """Judges one value each of any number of series, then learns from it.

    Args:
        config: The constants.
        regimes: Those of kinds.

    >>> detector = Detector(DetectorConfig())
    >>> state, row = detector.new_state(1), np.array([0])
    >>> rng = np.random.default_rng(0)
    >>> for minute, value in enumerate([*rng.normal(50, 2, 500), 90.0]):
    ...     verdict = detector.step(state, row, np.array([minute * 60_000]), np.array([value]))
    >>> verdict.record_score.round(), list(Kind)[verdict.kind[0]].value
    (array([68.]), 'anomaly')
    >>> verdict.lower.round(), verdict.typical.round(), verdict.upper.round()
    (array([43.]), array([50.]), array([57.]))
    """

    def __init__(self, config: DetectorConfig, regimes: RegimesConfig | None = None) -> None:
        self.config = config
        self.experts: list[Expert] = [
            Level(config.level_forget, config.hurry),
            LogLevel(config.level_forget, config.hurry),
            HourOfDay(config.hour_forget, config.hour_forget_most, config.timezone),
        ]
        self.calibration = series_calibration(
            config.calibration_forget, config.calibration_tail, config.calibration_strength, config.calibration_early
        )
        self.change = Change(config.change_forget)
        self.window = WindowMean(config.window_pace, config.window_clip)
        self.record = Record(config.record_tolerance, config.record_most, config.record_leak)
        self.frozen = Frozen(config.frozen_half, config.threshold)
        self.repeats = Repeats(config.notable, config.rest, config.damping, config.calm)
        self.kinds = Kinds(config, self.repeats)
        self.lingering = Lingering(config.notable)
        self.regimes = Regimes(regimes or RegimesConfig(), config.half, config.timezone)
        self.feedback = Feedback()
        self.past, self.days = Past(), Days(config.timezone)
        side = 0.5 * (1 - config.band)
        ends = ndtri(np.array([[side], [0.5], [1 - side]]))
        self._edge = float(ends[-1, 0])
        self.newcomers = Newcomers()
        self.suited = Suited(Choice(), ends, config.level_forget, config.hurry)

    def new_state(self, n: int) -> Columns:
        """The columns for n series of which nothing is known; the first axis is the series."""
        columns: Columns = {"seen": np.zeros(n), "time": np.zeros(n, np.int64)}
        for expert in self.experts:
            columns |= prefixed(f"{expert.name}.", expert.new_state(n))
            columns[f"{expert.name}.log_weight"] = np.full(n, -np.log(len(self.experts)))
        columns |= prefixed("point.", self.calibration.new_state(n))
        columns |= prefixed("window.", self.window.new_state(n) | self.calibration.new_state(n))
        columns |= prefixed("change.", self.change.new_state(n))
        columns |= prefixed("change.tail.", self.calibration.new_state(n))
        columns |= prefixed("record.", self.record.new_state(n))
        columns |= prefixed("frozen.", self.frozen.new_state(n))
        columns |= prefixed("lingering.", self.lingering.new_state(n))
        columns |= prefixed("regime.", self.regimes.new_state(n))
        columns |= prefixed("feedback.", self.feedback.new_state(n))
        columns |= prefixed("past.", self.past.new_state(n)) | prefixed("days.", self.days.new_state(n))
        columns |= prefixed("family.", self.suited.new_state(n))
        columns |= prefixed("peers.", self.newcomers.new_state(n))
        columns |= {_KEPT + name: columns[name].astype(kind) for name, kind in _UNLEARNED.items()}
        columns[_NOTHING][:] = -1.0
        return columns | prefixed("repeats.", self.repeats.new_state(n))

    def score(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        value: Array,
        day_off: Flags | None = None,
        about: About | None = None,
    ) -> SeriesVerdicts:
        """Verdicts on one value each of some series; pure.

        Args:
            state: As from `new_state`.
            rows: Distinct rows of the state, shape (n,).
            time: End of the window, epoch milliseconds, shape (n,).
            value: NaN or infinite: missing; shape (n,).
            day_off: Whether its hour counts as one of a weekend although it is none; ``None``: nowhere, shape (n,).
            about: What is known beforehand of each series; ``None``: nothing.
        """
        return self._judge(state, rows, time, value, day_off, about).verdicts

    def learn(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        value: Array,
        day_off: Flags | None = None,
        about: About | None = None,
    ) -> None:
        """Learns from one value each of some series; changes those rows of the state. Arguments as of `score`."""
        self._learn(state, rows, self._judge(state, rows, time, value, day_off, about))

    def step(
        self,
        state: Columns,
        rows: Ints,
        time: Ints,
        value: Array,
        day_off: Flags | None = None,
        about: About | None = None,
    ) -> SeriesVerdicts:
        """`score`, then `learn`, at the cost of one. Arguments as of `score`."""
        judgement = self._judge(state, rows, time, value, day_off, about)
        self._learn(state, rows, judgement)
        return judgement.verdicts

    def told(self, state: Columns, rows: Ints, true: Flags) -> None:
        """Takes in that the last alarm of some series was true, or false; changes those rows of the state."""
        self.feedback.told(Rows(state, rows, "feedback."), true)

    def accept(self, state: Columns, rows: Ints) -> Array:
        """Takes the present level of some series for typical and ends their incidents; changes those rows of the state.

        The next verdict on a series whose incident has been told of says that it is over: *new normal*.

        Returns:
            By how much each level was moved, shape (n,).
        """
        offset = self.feedback.accept(Rows(state, rows, "feedback."))
        for expert in self.experts:
            expert.shift(Rows(state, rows, f"{expert.name}."), offset, FEW)
        self.suited.shift(Rows(state, rows, "family."), offset, FEW)
        state["peers.variance"][rows] = 0.0
        change = Rows(state, rows, "change.")
        change["before"] = change["before"] - offset
        window = Rows(state, rows, "window.")
        window["mean"] = np.ones(len(rows))
        regime = Rows(state, rows, "regime.")
        self.repeats.close(Rows(state, rows, "repeats."), self.onset(state, rows), self.regimes.peak(regime))
        state["lingering.surprise"][rows] = 0.0
        self.regimes.close(regime)
        return offset

    def onset(self, state: Columns, rows: Ints) -> Ints:
        """When the incident began that is open in each series, told of or not; -1: none is; shape (n,)."""
        return self.regimes.onset(Rows(state, rows, "regime."))

    def _judge(
        self, state: Columns, rows: Ints, time: Ints, value: Array, day_off: Flags | None, about: About | None
    ) -> _Judgement:
        about = about or About.unknown(len(rows))
        own = Rows(state, rows, "")
        seen, valid = own["seen"], np.isfinite(value)
        mean = Rows(state, rows, "level.")["mean"]
        present = np.where(valid, clamp(np.where(valid, value, 0.0), -LARGEST, LARGEST), mean)
        extent = self.record.read(Rows(state, rows, "record."), present, seen)
        size = np.where(seen > 0, np.abs(mean), np.abs(present))
        grain = np.maximum(_COARSE * size, self.config.grain * (extent.high - extent.low))
        resolution = np.maximum(grain, SMALLEST)
        gap = np.where(seen > 0, np.maximum(time - own["time"], 0), 0).astype(np.float64)
        peers = self.newcomers.prior(Rows(state, rows, "peers."), seen)
        step = Step(present, seen, time, gap, resolution, day_off, peers)

        mixture, memos = self._predict(state, rows, step)
        medians, families = mixture.medians(), Rows(state, rows, "family.")
        surprise, band = self._foresee(families, mixture, medians, present, extent, about)
        surprise = compress(surprise)
        point, point_memo = self.calibration.evidence(Rows(state, rows, "point."), surprise)
        calibration = Rows(state, rows, "window.")
        mean_point = self.window.mean(self.window.read(calibration), point)
        window, window_memo = self.calibration.evidence(calibration, compress(self.window.surprise(mean_point)))
        record = self.record.evidence(extent, present, seen, resolution)
        steps = Rows(state, rows, "change.")
        jump, step_memo = self.change.surprise(steps, present - band[1], size, seen, resolution)
        jump = compress(jump)
        change, change_memo = self.calibration.evidence(Rows(state, rows, "change.tail."), jump)

        trust = np.where(valid, np.minimum(seen / self.config.warm_up, 1.0), 0.0)
        channels = {
            "point": point * trust,
            "window": window * trust,
            "record": record * trust,
            "change": change * trust,
        }
        weight, lingering, points = self._rank(state, rows, channels, step, np.where(valid, surprise + jump, 0.0))
        points = np.where(valid, points, 0.0)
        found = self._found(state, rows, step, points, valid, band)
        regime, frozen = Rows(state, rows, "regime."), Rows(state, rows, "frozen.")
        decision = self.regimes.decide(regime, found, self.config.threshold)
        same = valid & (seen > 0) & self.regimes.same(regime, found)
        channels["frozen"] = self.frozen.nats(frozen, same)
        strange = valid & (points >= self.config.threshold) & ~decision.explained
        strange |= self.frozen.tells(frozen, channels["frozen"])
        lived = self.past.read(Rows(state, rows, "past."), time, own["time"], present, band, same)
        begun = np.where(self.frozen.tells(frozen, channels["frozen"]), lived.same_since, NEVER)
        judged = Judged(weight, points, channels["frozen"], frozen["nats"], strange, valid)
        told = self.kinds.tell(Rows(state, rows, "repeats."), decision, judged, seen, time, begun)
        known = valid | (seen > 0)
        shown = (np.where(np.abs(edge) < _TRACE, 0.0, edge) for edge in band)
        lower, typical, upper = (np.where(known, edge, np.nan) for edge in shown)
        rarity = combine([self.calibration.rarity(memo) * trust for memo in (point_memo, window_memo)])
        verdicts = SeriesVerdicts(
            points,
            np.exp(-rarity),
            typical,
            lower,
            upper,
            told.kind,
            told.since,
            channels,
            experts=self._believed(families["family"], mixture.weights),
            expected=self._by_name(medians) | dict.fromkeys(self.suited.names, np.where(known, typical, 0.0)),
            onset=told.onset,
            context=self._context(state, rows, step, lived, found, decision, told.kind),
            incident=told.incident,
            turned=told.turned,
        )
        return _Judgement(
            verdicts=verdicts,
            valid=valid,
            about=about,
            step=step,
            mixture=mixture,
            memos=memos,
            extent=extent,
            lived=lived,
            level=np.where(seen > 0, mean, present),
            point=(point, point_memo),
            window=(mean_point, window_memo),
            change=(step_memo, change_memo),
            weight=weight,
            unrest=told.unrest,
            lingering=lingering,
            band=band,
            found=found,
            decision=decision,
        )

    def _rank(
        self, state: Columns, rows: Ints, channels: dict[str, Array], step: Step, surprise: Array
    ) -> tuple[Array, Array, Array]:
        """Weight of evidence, the surprise that lingers, and the score."""
        weight = weigh(
            channels["point"],
            self.config.weight_change * channels["change"],
            self.config.weight_window * channels["window"],
            self.config.weight_record * channels["record"],
        )
        worth = self.feedback.worth(Rows(state, rows, "feedback."))
        weight = weight * worth
        damped = self.repeats.damp(Rows(state, rows, "repeats."), weight)
        lingering = self.lingering.surprise(Rows(state, rows, "lingering."), surprise, step.seen)
        return weight, lingering, score(self.lingering.rank(damped, worth * lingering, step.seen), self.config.half)

    @staticmethod
    def _unit(state: Columns, rows: Ints, value: Array) -> Array:
        """The unit of the logarithm-like axis of some series."""
        unit = Rows(state, rows, "log_level.")["unit"]
        return np.where(unit > 0, unit, unit_of(value))

    def _found(
        self, state: Columns, rows: Ints, step: Step, points: Array, valid: Flags, band: tuple[Array, Array, Array]
    ) -> Found:
        """What regimes want to know of the values."""
        unit, value = self._unit(state, rows, step.value), step.value
        floor = finest(step.resolution, value, unit)
        outside = (value < band[0]) | (value > band[2])
        return Found(place(value, unit), points, floor, step.seen, step.time, step.gap, valid, outside)

    def _context(
        self, state: Columns, rows: Ints, step: Step, lived: Lived, found: Found, decision: Decision, kind: Ints
    ) -> dict[str, Array]:
        """What words rest on; NaN where there is no news."""
        context = dict.fromkeys(_CONTEXT, np.full(len(rows), np.nan))
        at = np.flatnonzero(((kind != Kind.NORMAL.code) & (kind != Kind.LEARNING.code)) | decision.inside)
        if not len(at):
            return context
        news = Lived(*(array[at] for array in lived))  # type: ignore[arg-type]
        day_off = None if step.day_off is None else step.day_off[at]
        days = self.days.several(Rows(state, rows[at], "days."), step.time[at], day_off)
        changes = (decision.turned == Kind.STATE_CHANGE.code) | (kind == Kind.NEW_NORMAL.code)
        told = self.past.context(news, step.seen[at], step.time[at]) | {"days": days}
        for name, values in told.items():
            context[name] = context[name].copy()
            context[name][at] = values
        return context | decision.context(found, self._unit(state, rows, step.value), changes)

    def _foresee(
        self, families: Rows, mixture: Mixture, medians: Array, value: Array, lived: Range, about: About
    ) -> tuple[Array, tuple[Array, Array, Array]]:
        """Surprise of the values and the band, by the family of each series."""
        lower, upper = mixture.band(self._edge)
        lower = np.where(lived.low >= 0, np.maximum(lower, 0.0), lower)
        band = (lower, clamp(total(mixture.weights * medians), lower, upper), upper)
        surprise = mixture.surprise(value)
        suited = self.suited.foresee(families, value, about)
        if suited:
            here, told = suited
            surprise[here] = told.surprise
            for edge, own in zip(band, (told.lower, told.typical, told.upper), strict=True):
                edge[here] = own
        return surprise, band

    def _believed(self, family: Array, weights: Array) -> dict[str, Array]:
        """The experts' weights; where another family than the mixture speaks, that one is believed alone."""
        others = {name: np.where(family == code, 1.0, 0.0) for code, name in enumerate(self.suited.names, 1)}
        return self._by_name(np.where(family == Family.MIXTURE, weights, 0.0)) | others

    def _by_name(self, rows: Array) -> dict[str, Array]:
        """A row for each expert, shape (k, n), by their names."""
        return {expert.name: row for expert, row in zip(self.experts, rows, strict=True)}

    def _predict(self, state: Columns, rows: Ints, step: Step) -> tuple[Mixture, list[Any]]:
        parts: list[Part] = []
        memos: list[Any] = []
        weights: list[Array] = []
        for expert in self.experts:
            own = Rows(state, rows, f"{expert.name}.")
            part, memo = expert.predict(own, step, parts[0] if parts else None)
            parts.append(part)
            memos.append(memo)
            weights.append(own["log_weight"])
        return Mixture(Stack(parts), np.array(weights)), memos

    def _learn(self, state: Columns, rows: Ints, judged: _Judgement) -> None:
        if not judged.valid.all():
            keep = judged.valid
            if not keep.any():
                return
            before = rows[~keep]
            saved = {name: column[before] for name, column in state.items()}
            self._learn_all(state, rows, judged)
            for name, column in saved.items():
                state[name][before] = column
            return
        self._learn_all(state, rows, judged)

    def _learn_all(self, state: Columns, rows: Ints, judged: _Judgement) -> None:
        step, mixture, after = judged.step, judged.mixture, judged.decision.after
        at = rows[after.at]
        kept: Flags = Rows(state, at, "")[_NOTHING] >= 0
        _copy(state, "", _KEPT, at[after.dead & ~kept])
        lower, middle, upper = judged.band
        # what was lived through is plausible: else a series that began constant would never learn how it varies
        reach_low = np.minimum(middle - self.config.reach * (middle - lower), judged.extent.low)
        reach_high = np.maximum(middle + self.config.reach * (upper - middle), judged.extent.high)
        harmless = np.minimum(np.maximum(step.value, reach_low), reach_high)
        harmless = np.where(step.seen > 0, harmless, step.value)
        point, point_memo = judged.point
        mean_point, window_memo = judged.window
        persists = clamp((mean_point - _PERSISTENT) / (_LASTING - _PERSISTENT), 0.0, 1.0)
        doubt = np.minimum(1.0, self.config.doubt / np.maximum(point, self.config.doubt))
        settled = np.minimum(step.seen / self.config.warm_up, 1.0)
        haste = persists * settled
        lesson = Lesson(harmless, doubt + (1 - doubt) * haste, haste)

        weights = reweigh(mixture.log_weights, mixture.parts.log_density(harmless), self.config.weight_forget)
        self.suited.learn(Rows(state, rows, "family."), step, lesson, mixture, judged.about)
        for expert, memo, weight in zip(self.experts, judged.memos, weights, strict=True):
            own = Rows(state, rows, f"{expert.name}.")
            expert.learn(own, step, lesson, memo)
            own["log_weight"] = weight

        everything = np.ones(len(rows), dtype=np.bool_)
        warm = step.seen >= self.config.warm_up
        self.calibration.learn(Rows(state, rows, "point."), point_memo, warm)
        window = Rows(state, rows, "window.")
        self.calibration.learn(window, window_memo, warm)
        window["mean"] = np.where(warm, mean_point, window["mean"])
        step_memo, change_memo = judged.change
        self.calibration.learn(Rows(state, rows, "change.tail."), change_memo, warm)
        self.change.learn(Rows(state, rows, "change."), step_memo, everything)
        extent = self.record.learn(judged.extent, step.value, judged.level, step.resolution)
        record = Rows(state, rows, "record.")
        record["low"], record["high"] = extent.low, extent.high
        frozen, nats = Rows(state, rows, "frozen."), judged.verdicts.evidence["frozen"]
        self.frozen.learn(frozen, nats > 0, step.seen, nats)
        self.repeats.learn(Rows(state, rows, "repeats."), judged.weight, step.time, everything, judged.unrest)
        self.lingering.learn(Rows(state, rows, "lingering."), judged.lingering, everything)
        self.regimes.learn(Rows(state, rows, "regime."), judged.found, judged.decision)
        _copy(state, _KEPT, "", at[after.returned & kept])
        state[_NOTHING][at[~after.stays]] = -1.0
        self.past.learn(Rows(state, rows, "past."), judged.lived, step.time, step.value)
        self.days.learn(Rows(state, rows, "days."), step.time, step.day_off)
        self.feedback.learn(Rows(state, rows, "feedback."), step.value - middle)
        own = Rows(state, rows, "")
        own["seen"], own["time"] = step.seen + 1, step.time


def _copy(state: Columns, source: str, target: str, rows: Ints) -> None:
    if len(rows):
        for name in _UNLEARNED:
            state[target + name][rows] = state[source + name][rows]
