"""Verdicts on the counts of log lines: window by window, all machines of a shard at once.

This module knows neither Spark nor Kafka. Each machine has two rows in the models, one for its templates and one for
its severities; both together give one verdict, with the metric `logs`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtri

from engine.spec.duration import duration_ms
from models.evidence.repeats import NEVER
from models.evidence.score import combine, score, worth
from models.numbers.arrays import Array, Flags, Ints, Rows
from models.series.course import Course
from models.series.feedback import Feedback
from models.templates.config import TemplateConfig
from models.templates.model import CHANNELS, Templates, TemplateVerdicts
from models.templates.phases import PhaseNews, Phases
from models.templates.tables import LogWindow
from models.verdicts import Kind
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.logs.frames import EVIDENCE, NAMED, OWN, JudgedWindow, framed
from pipelines.jobs.detectors.logs.labels import LogLabels
from pipelines.jobs.detectors.logs.state import METRIC, SEVERITIES, TEMPLATES, LogState
from pipelines.jobs.detectors.rules import Effects, effects
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.jobs.detectors.worst import revisions, unusual, worst
from pipelines.jobs.templates.mining import SEVERITY

EVERY = 360
"""After this many windows, pairs of machine and template whose counts have faded away are removed from the state."""

_ENDS = ndtri(np.array([0.0005, 0.5, 0.9995]))
_LEAST = 1.0
"""The least evidence, in nats, with which a verdict names a template."""

_GRAVE = [f"{SEVERITY}{name}" for name in ("emergency", "alert", "critical", "error")]
"""The metrics that count the lines of severities that mean that something is wrong."""

_COURSES = [course.value or None for course in Course]


class _Evidence(NamedTuple):
    """The evidence of each machine's window: its number of lines, the evidence by channel in nats, and the score."""

    lines: Array
    nats: dict[str, Array]
    points: Array


class _Phase(NamedTuple):
    """How a window changes each machine's incident.

    Attributes:
        step: The result of `Phases.step`.
        somewhat: Flags of the machines whose window is somewhat unusual.
        own: The machines' rows of the state.
        before: The machines' phases before the window, by column of the state.
    """

    step: PhaseNews
    somewhat: Flags
    own: Rows
    before: dict[str, Any]

    def restore(self, left: Flags) -> None:
        """Restores the phases that the flagged machines had before the window."""
        for name, column in self.before.items():
            self.own[name] = np.where(left, column, self.own[name])


class LogDetection:
    """Judges windows of logs and learns from them. It holds no state itself: callers pass the state, which is changed.

    Args:
        settings: The detector's settings.
        size: Length of the windows, milliseconds.
    """

    def __init__(self, settings: DetectorSettings, size: int) -> None:
        self.threshold, self.size, self.forget = settings.threshold, size, duration_ms(settings.forget)
        self.model, self.phases, self.feedback = Templates(TemplateConfig()), Phases(), Feedback()
        self.unusual = unusual(settings.threshold) | pl.col("_unusual")
        self.labels = LogLabels(self.model, self.phases, self.feedback)

    def new_state(self) -> LogState:
        """The state before the first window."""
        return LogState(self.model, self.phases, self.feedback)

    def process(
        self, features: pl.DataFrame, state: LogState, rules: Sequence[RuleInForce], until: int
    ) -> pl.DataFrame:
        """Judges all windows that end at ``until`` or earlier.

        Known machines are judged also in windows in which they wrote no line.

        Args:
            features: Rows of `LogFeatures` in any order: complete windows that were not judged before.
            state: The state; changed.
            rules: The rules, with the times in which they are in force; here they decide what is learned.
            until: Windows are judged up to this instant, also if no machine wrote a line; epoch milliseconds.

        Returns:
            Verdicts in order of window end and machine, with the columns of `Novelty` that are known here; without
            columns if there are no verdicts. If an incident proves to be a change of state, there is a further verdict
            on its worst window, with revision 1.
        """
        rows = features.sort("window_end", "entity", "metric")
        parts = {int(end): part for (end,), part in rows.partition_by("window_end", as_dict=True).items()}
        frames: list[pl.DataFrame] = []
        calm: list[JudgedWindow] = []
        while (end := self._next_end(state, parts)) is not None and end <= until:
            window = self._window(parts.pop(end, rows.clear()), state, end, rules)
            if window.calm and state.worst.is_empty():
                calm.append(window)
            else:
                frames += [*self._undated(calm), self._dated_back(state, framed([window], self.size))]
                calm = []
            state.judged_until = end
            if end // self.size % EVERY == 0:
                state.tidy(self.model.faint(state.tables()), end, self.forget)
        frames = [frame for frame in (*frames, *self._undated(calm)) if frame.height]
        return pl.concat(frames) if frames else pl.DataFrame()

    def _undated(self, calm: Sequence[JudgedWindow]) -> list[pl.DataFrame]:
        """The verdicts of windows in which there is no incident to date back, in one frame if there are any."""
        return [framed(calm, self.size).drop(*OWN)] if calm else []

    def _next_end(self, state: LogState, ends: Collection[int]) -> int | None:
        """End of the next window to judge; ``None`` if no machine is active and there are no more lines."""
        own = [state.judged_until + self.size] if state.judged_until is not None and state.has_active() else []
        return min([*ends, *own], default=None)

    def _window(self, part: pl.DataFrame, state: LogState, end: int, rules: Sequence[RuleInForce]) -> JudgedWindow:
        pairs = state.take(part)
        rows = state.active(pairs)
        place = np.full(len(state.entities), -1)
        place[rows] = np.arange(len(rows))
        owner, template = (state.pairs.columns[name].astype(np.int64) for name in ("owner", "template"))
        mine = np.flatnonzero(place[owner[: len(state.pairs)]] >= 0)
        count = np.zeros(len(state.pairs))
        count[pairs] = part["count"].to_numpy()
        view: Ints = state.entities.columns["fleet"].astype(np.int64)[rows]
        machine: Ints = state.entities.columns["machine"].astype(np.int64)
        grave: Array = part["metric"].is_in(_GRAVE).to_numpy() * part["count"].to_numpy().astype(np.float64)
        errors = np.bincount(machine[owner[pairs]], grave, len(state.machines)).astype(np.float64)[machine[rows]]
        window = LogWindow(rows, view, mine, place[owner[mine]], template[mine], count[mine], errors)
        young = Rows(state.entities.columns, rows, "")["windows"] < self.model.config.warm_up
        concerned = self._effects(state, end, window, rules)
        if concerned is None or not concerned.skip_learning.any():
            verdicts = self.model.step(state.tables(), window)
        else:
            verdicts = self.model.score(state.tables(), window)
            self.model.step(state.tables(), window.part(~concerned.skip_learning))
        return self._verdicts(state, end, window, verdicts, young, concerned)

    def _effects(self, state: LogState, end: int, window: LogWindow, rules: Sequence[RuleInForce]) -> Effects | None:
        """The effects of the rules on each row of a window; ``None`` if no rule applies."""
        if not rules:
            return None
        machine: Ints = state.entities.columns["machine"].astype(np.int64)[window.rows]
        frame = pl.DataFrame(
            {"entity": state.machines.index.keys["entity"][machine], "value": window.total(window.count)}
        )
        spans = {"metric": pl.lit(METRIC), "window_start": pl.lit(end - self.size), "window_end": pl.lit(end)}
        return effects(rules, frame.with_columns(**spans))

    def _verdicts(
        self,
        state: LogState,
        end: int,
        window: LogWindow,
        verdicts: TemplateVerdicts,
        young: Flags,
        concerned: Effects | None,
    ) -> JudgedWindow:
        """Joins the verdicts on templates and on severities into one verdict per machine.

        Args:
            state: The state; changed.
            end: End of the window, epoch milliseconds.
            window: The window's counts.
            verdicts: The verdicts on templates and severities.
            young: Flags of the rows that are still learning.
            concerned: The effects of the rules on the rows, if any.
        """
        machine: Ints = state.entities.columns["machine"].astype(np.int64)[window.rows]
        mine, theirs = (np.flatnonzero(window.fleet == view) for view in (TEMPLATES, SEVERITIES))
        place = np.full(len(state.machines), -1)
        place[machine[theirs]] = theirs
        other = place[machine[mine]]  # a machine has a row in both, or in none
        evidence = self._evidence(state, window, machine[mine], verdicts, mine, other)
        lower, typical, upper = (verdicts.expected.quantile(np.full(len(verdicts.lines), end))[mine] for end in _ENDS)
        phase = self._phase(state, end, machine[mine], verdicts, evidence, (mine, other))
        kind, changes = phase.step.kind, phase.step.changes
        if concerned is not None:  # a window that is neither learned nor reported only lets an incident come to its end
            out, usual = concerned.part(mine), np.isin(kind, ("normal", "recovered")) & ~phase.somewhat & ~changes
            left = out.skip_learning & out.muted(evidence.lines, typical) & ~usual
            phase.restore(left)
            changes &= ~left
        kind = np.where((kind == "normal") & young[mine], "learning", kind)

        entities = state.machines.index.keys["entity"][machine[mine]]
        columns = self._columns(entities, kind, evidence, (lower, typical, upper), phase, changes)
        of_row = np.argsort(np.concatenate([mine, other])) % max(len(mine), 1)
        return JudgedWindow(end, len(mine), columns, _named(state, window, verdicts, of_row))

    def _columns(
        self,
        entities: pl.Series,
        kind: Array,
        evidence: _Evidence,
        band: tuple[Array, Array, Array],
        phase: _Phase,
        changes: Flags,
    ) -> dict[str, Any]:
        """The verdicts by columns; a machine without lines gets a row only if its verdict is news.

        Args:
            entities: Name of each machine, shape (n,).
            kind: Kind of each machine's verdict.
            evidence: The evidence of each machine's window.
            band: Lower bound, typical value and upper bound of the number of lines.
            phase: How the window changes each machine's incident.
            changes: Flags of the machines whose incident proves to be a change of state.
        """
        shown = np.flatnonzero((evidence.lines > 0) | ((kind != "normal") & (kind != "learning")))
        lower, typical, upper = (bound[shown] for bound in band)
        return {
            "__m": shown,
            "entity": entities[shown],
            "kind": kind[shown].tolist(),
            "record_score": evidence.points[shown],
            "state_score": np.where(phase.step.incident == Course.OPEN.code, evidence.points, 0.0)[shown],
            "probability": np.exp(-combine(list(evidence.nats.values())))[shown],
            "actual": evidence.lines[shown],
            "typical": typical,
            "lower": np.floor(lower),
            "upper": np.ceil(upper),
            "since": phase.step.since[shown],
            "incident_state": [_COURSES[code] for code in phase.step.incident[shown].tolist()],
            "_changes": changes[shown],
            "_unusual": phase.somewhat[shown],
            "_unrest": ((phase.step.began != NEVER) | (phase.step.incident == Course.OPEN.code))[shown],
            **{name: evidence.nats[name][shown] for name in EVIDENCE},
        }

    def _evidence(
        self, state: LogState, window: LogWindow, machines: Ints, verdicts: TemplateVerdicts, mine: Ints, other: Ints
    ) -> _Evidence:
        """The evidence of each machine's window, weighted by operators' labels, whose effect fades.

        Args:
            state: The state; changed.
            window: The window's counts.
            machines: Row of each machine in the state.
            verdicts: The verdicts on templates and severities.
            mine: For each machine the row of its templates among the verdicts.
            other: For each machine the row of its severities among the verdicts.
        """
        lines = verdicts.lines[mine]
        nats = {name: verdicts.evidence[name][mine] for name in CHANNELS}
        severity = combine([verdicts.evidence[name][other] for name in CHANNELS])
        nats["severity"] = np.where(lines > 0, severity, 0.0)
        points = np.maximum(verdicts.record_score[mine], score(nats["severity"], self.model.config.half))
        errors = window.strongest(verdicts.again)[mine]
        nats["unseen"] = np.maximum(nats["unseen"], errors)
        points = np.maximum(points, score(self.model.config.weight_unseen * errors, self.model.config.half))
        labelled = Rows(state.machines.columns, machines, "feedback.")
        points = worth(points, self.feedback.worth(labelled))
        self.feedback.fade(labelled, lines > 0)
        return _Evidence(lines, nats, points)

    def _phase(
        self,
        state: LogState,
        end: int,
        machines: Ints,
        verdicts: TemplateVerdicts,
        evidence: _Evidence,
        rows: tuple[Ints, Ints],
    ) -> _Phase:
        """How the window changes each machine's incident.

        Args:
            state: The state; changed.
            end: End of the window, epoch milliseconds.
            machines: Row of each machine in the state.
            verdicts: The verdicts on templates and severities.
            evidence: The evidence of each machine's window.
            rows: For each machine the rows of its templates and of its severities among the verdicts.
        """
        own, config = Rows(state.machines.columns, machines, ""), self.model.config
        last = np.where(evidence.lines > 0, end, own["last"]).astype(np.int64)
        own["last"] = last
        absent: Flags = (evidence.lines == 0) & (evidence.nats["silence"] >= config.lost)
        strange: Flags = evidence.nats["unseen"] * config.weight_unseen >= config.half
        start = np.where(absent, last, end - self.size)
        alarm: Flags = (evidence.points >= self.threshold) & (evidence.lines > 0)
        mine, other = rows
        persists = np.maximum(verdicts.persists[mine], verdicts.persists[other])
        somewhat = alarm | (np.maximum(verdicts.usual[mine], verdicts.usual[other]) >= config.doubt)
        before = {name: own[name] for name in self.phases.new_state(0)}
        step = self.phases.step(own, start, alarm, somewhat, strange, persists, absent)
        return _Phase(step, somewhat, own, before)

    def _dated_back(self, state: LogState, verdicts: pl.DataFrame) -> pl.DataFrame:
        """Adds revisions: for each incident that proves to be a change of state, one of its worst verdict."""
        result = verdicts.drop(*OWN)
        inside = (
            verdicts.drop("_changes", "_unrest").with_columns(onset=pl.lit(0, pl.Int64)).filter(verdicts["_unrest"])
        )
        decided = verdicts.filter("_changes").select("entity", "metric", "window_end", onset="since")
        if state.worst.height:
            inside = pl.concat([state.worst.join(verdicts, on="entity", how="semi"), inside], how="diagonal_relaxed")
        if decided.height:
            whole = inside.drop("onset").join(decided.select("entity", "onset"), on="entity", how="inner")
            kinds = decided.with_columns(turned=pl.lit(Kind.STATE_CHANGE.value))
            result = pl.concat([result, revisions(kinds, whole, self.unusual).select(result.columns)])
        goes_on = verdicts.filter("_unrest", ~pl.col("_changes"))
        still = worst(inside.join(goes_on, on="entity", how="semi"), self.unusual)
        others = state.worst.join(verdicts, on="entity", how="anti") if state.worst.height else still.clear()
        state.worst = pl.concat([others, still], how="diagonal_relaxed")
        return result


def _named(state: LogState, window: LogWindow, verdicts: TemplateVerdicts, machine: Ints) -> dict[str, Any]:
    """The templates and severities that contribute to the verdicts of a window, `NAMED` by column.

    Args:
        state: The state, which holds the texts of templates.
        window: The window's counts.
        verdicts: The verdicts on templates and severities.
        machine: For each row of the window the number of its machine.
    """
    strong = np.flatnonzero(verdicts.gain >= _LEAST)
    metrics = state.pairs.index.keys["metric"][window.pairs[strong]].to_list()
    texts = [state.texts.get(metric, (None, None, None)) for metric in metrics]
    columns = [
        machine[window.owner[strong]],
        metrics,
        verdicts.gain[strong],
        *([text[n] for text in texts] for n in range(3)),
    ]
    return dict(zip(NAMED, columns, strict=True))
