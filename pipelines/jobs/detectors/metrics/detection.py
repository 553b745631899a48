"""Judges frames of values; the streaming detector and `newnormal score` share this code.

Each series is judged along all of its windows, then each machine with several metrics along those of its own. It knows
neither Spark nor Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from engine.spec.duration import duration_ms
from models.detector import Detector, Owners
from models.evidence.repeats import NEVER
from models.evidence.score import combine
from models.families.suited import About
from models.machine.joined import Joined, JoinedVerdicts, Windows
from models.model_config import ModelConfig
from models.numbers.arrays import Array, Columns, Flags, Ints
from models.records import Table
from models.regimes.absence import SEVERAL
from models.series.course import Course
from models.verdicts import Kind, SeriesVerdicts, Standing
from pipelines.contracts.records.novelty import JOINED, QUIET_KINDS
from pipelines.contracts.settings import DetectorSettings
from pipelines.contracts.settings.input import names
from pipelines.jobs.detectors.beliefs import KINDS
from pipelines.jobs.detectors.beliefs import new_columns as belief_columns
from pipelines.jobs.detectors.metrics import ended
from pipelines.jobs.detectors.metrics.absence import KNOWN, AbsenceWatch
from pipelines.jobs.detectors.metrics.believing import believe_machines, believe_series, believed_absent
from pipelines.jobs.detectors.metrics.ended import OnPurpose
from pipelines.jobs.detectors.metrics.families import about
from pipelines.jobs.detectors.metrics.filling import FillWatch
from pipelines.jobs.detectors.metrics.fleet import Fleet
from pipelines.jobs.detectors.metrics.forgetting import Forgetting
from pipelines.jobs.detectors.metrics.judging_order import in_company, in_judging_order, metrics_at_once, steps
from pipelines.jobs.detectors.metrics.machines import Machines, new_columns, new_slots
from pipelines.jobs.detectors.metrics.row_verdicts import RowVerdicts
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.metrics.verdict_frames import (
    CHANNELS,
    NO_INCIDENTS,
    SCHEMA,
    JoinedWindows,
    completed,
    joined_frame,
    with_nulls,
)
from pipelines.jobs.detectors.reported import followed, new_column
from pipelines.jobs.detectors.rules import Effects, applied, effects
from pipelines.jobs.detectors.rules_in_force import RuleInForce
from pipelines.jobs.detectors.worst import revisions, unusual, worst

_COMBINED = ("point", "window", "record", "change")
"""The evidence channels of a metric that count for the joined verdict."""


class _Rows(NamedTuple):
    """Windows to judge; all arrays have shape (n,).

    Attributes:
        series: Row of the series in the state.
        owner: Row of the machine in the state.
        time: Start of the window, epoch milliseconds.
        end: End of the window, epoch milliseconds.
        value: The value; NaN or infinite if it is missing.
    """

    series: Ints
    owner: Ints
    time: Ints
    end: Ints
    value: Array

    def part(self, rows: slice) -> _Rows:
        """Some of the windows."""
        return _Rows(self.series[rows], self.owner[rows], self.time[rows], self.end[rows], self.value[rows])


class Detection:
    """Judges frames of values and learns from them. It holds no state itself: callers pass it and get it back.

    Args:
        settings: The detector's settings.
        config: The constants of the models, for benchmarks; threshold and time zone are those of the settings.
        says: True if changes of beliefs are collected, see `DetectionState.beliefs`.
        end: See `AbsenceWatch`.
        horizon: How far behind the watermark a window can be judged again, milliseconds: nothing is forgotten so soon.
        partitions: See `Fleet`.
    """

    def __init__(
        self,
        settings: DetectorSettings,
        config: ModelConfig | None = None,
        says: bool = False,
        end: int | None = None,
        horizon: int = 0,
        partitions: int = 0,
    ) -> None:
        every = config or ModelConfig()
        series = replace(
            every.series, threshold=settings.threshold, false_alarms=settings.false_alarms, timezone=settings.timezone
        )
        self.detector = Detector(series, every.regimes, every.choice, every.feedback, every.evidence, every.departures)
        self.joined, self.machines = Joined(series, every.regimes), Machines(every.machine, series.learning)
        self.absence = AbsenceWatch(settings.threshold, end)
        self.fleet = Fleet(every.fleet, series, partitions, names(settings.peers_by))
        self.forgetting = Forgetting(max(duration_ms(settings.forget), 2 * horizon), KNOWN, self.absence.end)
        self.fill = FillWatch(settings)
        self.family, self.unusual = settings.family, unusual(settings.threshold)
        self.says = says

    def new_state(self) -> DetectionState:
        """The state before the first window."""
        return DetectionState(
            self._new_series,
            lambda n: (
                self.joined.new_state(n)
                | new_columns(n)
                | self.absence.new_entities(n)
                | ended.new_machines(n)
                | self.fleet.new_entities(n)
                | _report_columns(n)
                | self.detector.new_machines(n)
            ),
            self.machines.new_tables(),
            NO_INCIDENTS,
            self.fill.new_state,
        )

    def _new_series(self, n: int) -> Columns:
        own = self.detector.new_state(n) | new_slots(n) | self.absence.new_series(n)
        return own | self.forgetting.new_series(n) | self.fleet.new_series(n) | _report_columns(n)

    def from_tables(self, tables: dict[str, pa.Table]) -> DetectionState:
        """The inverse of `DetectionState.to_tables`; missing columns get the values of a new series or machine.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a table does not fit the models.
        """
        state = self.new_state()
        state.fill(tables)
        return state

    def process(
        self,
        frame: pl.DataFrame,
        state: DetectionState,
        rules: Sequence[RuleInForce] = (),
        now: int | None = None,
        on_purpose: OnPurpose | None = None,
        beside: bool = True,
    ) -> tuple[pl.DataFrame, DetectionState]:
        """Judges all rows of a frame, and learns from them.

        A machine with two or more metrics at a window end also gets a joined verdict there, with the metric `JOINED`.
        If expected windows are missing, the first of them gets a verdict of kind *absence* (`AbsenceWatch`). When the
        kind of an incident is decided, there is a further verdict on its worst window, with revision 1; that window may
        belong to an earlier call.

        Args:
            frame: Rows in any order: ``entity``, ``metric``, ``window_start``, ``window_end`` (epoch milliseconds),
                ``value``, and optionally ``kind`` (of the metric), ``count`` (samples in the window) and ``prompt``
                (the value that came in time, see `Fleet`). A value that is null, NaN or infinite is missing.
            state: The state, from `new_state` or an earlier call; callers must continue with the returned state.
            rules: The rules, with the times in which they are in force.
            now: The watermark, epoch milliseconds: no later row ends before it. ``None`` if it is not known; then the
                absence of a whole machine is announced only when the machine is back.
            on_purpose: Says which machines were ended on purpose: these are not absent; ``None``: none were.
            beside: True if machines are compared with their peers.

        Returns:
            The verdicts, with the columns of `SCHEMA`, in order of window end, machine and metric; and the state.
        """
        if frame.is_empty():
            absent = self._absences(self._overdue(state, now, on_purpose), state)
            self._gone(state, now)
            return self._ruled(rules, absent, state), state
        frame, series, entities, step = in_judging_order(frame, state)
        sent = _Rows(series, entities, *(frame[name].to_numpy() for name in ("window_start", "window_end", "value")))
        self.forgetting.arrived(state, series, sent.end)
        came = np.flatnonzero(np.isfinite(sent.value))
        heard = self.absence.arrived(
            state, series[came], entities[came], step[came], sent.end[came], sent.end[came] - sent.time[came]
        )
        ended.arrived(state, entities[came])
        back = np.full((2, frame.height), NEVER)
        back[:, came] = heard.series, heard.machine
        # the first window after an absence may be cut short, so that its values are neither judged nor learned
        rows = sent._replace(value=np.where((back != NEVER).any(axis=0), np.nan, sent.value))
        ruled = effects(rules, frame)
        day_off, taught = (ruled.day_off, ~ruled.skip_learning) if ruled else (None, None)
        of_series, standing = self._judge(state, rows, day_off, taught, about(frame, self.family))
        verdicts = RowVerdicts(of_series, standing.onset, metrics_at_once(step, entities), ruled)
        verdicts.recover(came, heard.series)
        joined = self._together(state, rows, step, of_series, ruled, back[1])
        outlook, full = self.fill.step(state, frame, taught)
        if self.says:
            for part in steps(step):
                returned = back[0, part] != NEVER
                ahead = outlook.part(part)
                believe_series(state, sent.part(part), of_series.part(part), standing.part(part), returned, ahead)
            believe_machines(state, joined, step, rows.end, back[1])
        result = self._dated_back(with_nulls(verdicts.frame(frame)), verdicts.onset, verdicts.turned, state)
        over = ended.unexpected(state, heard.absences, on_purpose, lasting=False)
        absences = np.concatenate([over, self._overdue(state, now, on_purpose)])
        by_machine = with_nulls(joined_frame(frame, verdicts.numbers, joined))
        result = pl.concat([result, by_machine, full, self._absences(absences, state)])
        if beside:
            result = pl.concat([result, self.fleet.judge(state, frame, series, taught)])
        self._gone(state, now)
        return self._ruled(rules, result.sort("window_end", "entity", "metric", maintain_order=True), state), state

    def close(self, state: DetectionState, now: int, beside: bool = True) -> pl.DataFrame:
        """Closes the incidents of machines that were ended on purpose; see `ended`.

        Args:
            state: The state; changed.
            now: One of `ended.times`.
            beside: See `process`.

        Returns:
            Verdicts, with the columns of `SCHEMA`.
        """
        beliefs, verdicts = ended.close(state, now, self.fleet.release if beside else None)
        if self.says and beliefs.height:
            state.absent.append(believed_absent(beliefs))
        numbers = {"record_score": 0.0, "state_score": 0.0, "probability": 1.0}
        known = verdicts.with_columns(**numbers)
        return _whole(known, Kind.NORMAL, Course.CLOSED, pl.lit(0.0)) if verdicts.height else pl.DataFrame()

    def _overdue(self, state: DetectionState, now: int | None, on_purpose: OnPurpose | None) -> Table:
        return ended.unexpected(state, self.absence.overdue(state, now), on_purpose, lasting=True)

    def next_due(self, state: DetectionState) -> int:
        """The earliest watermark at which something is absent, gone or forgotten if no windows come."""
        return min(self.absence.next_due(state), self.forgetting.next_due(state), ended.next_due(state))

    def _ruled(self, rules: Sequence[RuleInForce], verdicts: pl.DataFrame, state: DetectionState) -> pl.DataFrame:
        """Applies the rules in force to verdicts, and follows alerts by rules from verdict to verdict."""
        ruled = applied(rules, verdicts)
        first = pl.col("revision") == 0
        untaught = [each.rule.id for each in rules if each.rule.skip_learning]
        reported = followed(ruled.filter(first), {JOINED: state.entities, None: state.series}, untaught)
        again = ruled.filter(~first)
        return pl.concat([reported, again]) if again.height else reported

    def _dated_back(self, verdicts: pl.DataFrame, onset: Ints, turned: Ints, state: DetectionState) -> pl.DataFrame:
        """Adds revisions for incidents whose kind was decided; keeps the worst verdict of each open incident.

        Args:
            verdicts: Verdicts on metrics.
            onset: For each verdict the onset of the incident that is open after it, announced or not, epoch
                milliseconds; -1 if none is open.
            turned: For each verdict the decided kind of the incident that began at ``since``, as code of `Kind`; -1 if
                none was decided.
            state: The state; changed.
        """
        inside = verdicts.with_columns(onset=pl.Series(onset)).filter(pl.Series(onset != NEVER))
        inside = pl.concat([state.worst, inside])
        if inside.is_empty():
            return _brief(verdicts)
        if (turned >= 0).any():
            decided = verdicts.filter(pl.Series(turned >= 0)).with_columns(onset="since")
            decided = decided.with_columns(turned=KINDS.gather(turned[turned >= 0]))
            verdicts = pl.concat([verdicts, revisions(decided, inside, self.unusual).drop("onset")])
        rows = state.series.find(inside)
        is_open = self.detector.onset(state.series.columns, rows) == inside["onset"].to_numpy()
        state.worst = worst(inside.filter(pl.Series(is_open)), self.unusual)
        return _brief(verdicts)

    def _absences(self, absences: Table, state: DetectionState) -> pl.DataFrame:
        """The verdicts on absences; their series and machines are believed to be absent."""
        absent = self.absence.verdicts(absences, state, JOINED)
        if absent.is_empty():
            return pl.DataFrame(schema=SCHEMA)
        verdicts = _whole(absent, Kind.ABSENCE, Course.OPEN, pl.col("absence"))
        if self.says:
            state.absent.append(believed_absent(verdicts))
        return verdicts

    def _gone(self, state: DetectionState, now: int | None) -> None:
        """Says of what has sent nothing for a day that it is no longer expected."""
        if self.says and now is not None and (gone := self.absence.gone(state, now)).height:
            state.absent.append(believed_absent(gone))

    def _judge(
        self, state: DetectionState, rows: _Rows, day_off: Flags | None, taught: Flags | None, about: About
    ) -> tuple[SeriesVerdicts, Standing]:
        """The verdicts on the metrics. The models learn from each value unless a rule forbids it."""
        owners = Owners(state.entities.columns, rows.owner)
        return self.detector.steps(
            state.series.columns, rows.series, rows.time, rows.value, day_off, about, taught, owners
        )

    def _together(
        self,
        state: DetectionState,
        rows: _Rows,
        step: Ints,
        verdicts: SeriesVerdicts,
        ruled: Effects | None,
        back: Ints,
    ) -> JoinedWindows:
        """The joined verdicts on machines with two or more metrics in a step, in the order of the steps.

        Args:
            state: The state; changed.
            rows: The rows of the frame.
            step: The number of the step of each row, shape (n,).
            verdicts: The verdicts on the rows.
            ruled: The effects of the rules on the rows, if any.
            back: For each row the start of the absence of its whole machine that it ends, epoch milliseconds; -1 if
                there was none, shape (n,).
        """
        several = state.entities.columns["heard.only"][rows.owner] == SEVERAL
        joint, first = in_company(step, rows.owner, (back != NEVER) & several)
        begins = joint[first]
        windows = Windows(rows.owner[begins], rows.time[begins], np.append(first, len(joint)))
        value = np.where(np.isfinite(rows.value), rows.value, np.nan)[joint]
        counts: Flags = np.isfinite(value) & (verdicts.kind[joint] != Kind.LEARNING.code)
        evidence = combine([verdicts.evidence[name][joint] for name in _COMBINED])
        seen = learned = taught = None
        if ruled and len(joint):
            muted = ruled.muted(rows.value, verdicts.typical)[joint]
            counts &= ~muted
            skipped = ruled.skip_learning[joint]
            seen, learned = np.where(muted, np.nan, value), np.where(skipped, np.nan, value)
            taught = ~np.logical_or.reduceat(skipped, first)
        together = self.machines.step(state, windows, rows.series[joint], value, seen, learned)
        columns = state.entities.columns
        onset, away, lent = verdicts.onset[joint], verdicts.state[joint], verdicts.lent[joint]
        joined = self.joined.join(columns, windows, evidence, counts, together, onset, taught, away, lent)
        return JoinedWindows(windows, begins, joint, joined, _recover(joined, windows, back[joint]))


def _whole(known: pl.DataFrame, kind: Kind, course: Course, absence: pl.Expr) -> pl.DataFrame:
    """Verdicts on windows that did not come, with the columns of `SCHEMA`, from those that are known."""
    evidence = {name: pl.lit(0.0) for name in CHANNELS} | {"absence": absence}
    fixed = {
        "metric_kind": pl.lit("gauge"),
        "kind": pl.lit(kind.value),
        "incident_state": pl.lit(course.value),
        "evidence": pl.struct([value.alias(name) for name, value in evidence.items()]),
        "revision": pl.lit(0, pl.Int64),
    }
    return completed(known.with_columns(**fixed))


def _report_columns(n: int) -> Columns:
    """The state columns of what was reported by rules, and said of beliefs, of n series or machines."""
    return new_column(n) | belief_columns(n)


def _brief(verdicts: pl.DataFrame) -> pl.DataFrame:
    """The verdicts without the figures that only news have, where they are no news."""
    news = ~pl.col("kind").is_in(QUIET_KINDS)
    return verdicts.with_columns(pl.when(news).then(name).alias(name) for name in ("experts", "expected", "context"))


def _recover(joined: JoinedVerdicts, windows: Windows, back: Ints) -> Flags:
    """Turns the joined verdicts on windows with which a machine sends again after an absence into recoveries.

    Args:
        joined: The joined verdicts; changed.
        windows: Their windows.
        back: For each row that went in the start of the absence that it ends, epoch milliseconds; -1 if there was none.

    Returns:
        True for the windows that end an absence, one flag per window.
    """
    returned = np.zeros(len(windows.entity), np.bool_)
    ends = np.flatnonzero(back != NEVER)
    at = windows.place[ends]
    returned[at] = True
    joined.verdicts.kind[at], joined.verdicts.since[at] = Kind.RECOVERED.code, back[ends]
    joined.incident[at], joined.state_score[at] = Course.CLOSED.code, 0.0
    return returned
