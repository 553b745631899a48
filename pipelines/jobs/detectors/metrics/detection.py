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
from pipelines.jobs.detectors.beliefs import KINDS
from pipelines.jobs.detectors.beliefs import new_columns as belief_columns
from pipelines.jobs.detectors.metrics.absence import AbsenceWatch
from pipelines.jobs.detectors.metrics.believing import believe_machines, believe_series, believed_absent
from pipelines.jobs.detectors.metrics.families import about
from pipelines.jobs.detectors.metrics.judging_order import judging_order, steps
from pipelines.jobs.detectors.metrics.machines import Machines, new_columns, new_slots
from pipelines.jobs.detectors.metrics.row_verdicts import RowVerdicts
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.metrics.verdict_frames import (
    CHANNELS,
    NO_INCIDENTS,
    SCHEMA,
    JoinedWindows,
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
    """

    def __init__(
        self, settings: DetectorSettings, config: ModelConfig | None = None, says: bool = False, end: int | None = None
    ) -> None:
        every = config or ModelConfig()
        series = replace(
            every.series, threshold=settings.threshold, false_alarms=settings.false_alarms, timezone=settings.timezone
        )
        self.detector = Detector(series, every.regimes, every.choice, every.feedback, every.evidence, every.departures)
        self.joined, self.machines = Joined(series, every.regimes), Machines(every.machine, series.learning)
        self.absence = AbsenceWatch(settings.threshold, end)
        self.family, self.unusual = settings.family, unusual(settings.threshold)
        self.says = says

    def new_state(self) -> DetectionState:
        """The state before the first window."""
        return DetectionState(
            lambda n: self.detector.new_state(n) | new_slots(n) | self.absence.new_series(n) | _report_columns(n),
            lambda n: (
                self.joined.new_state(n)
                | new_columns(n)
                | self.absence.new_entities(n)
                | _report_columns(n)
                | self.detector.new_machines(n)
            ),
            self.machines.new_tables(),
            NO_INCIDENTS,
        )

    def from_tables(self, tables: dict[str, pa.Table]) -> DetectionState:
        """The inverse of `DetectionState.to_tables`; missing columns get the values of a new series or machine.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a table does not fit the models.
        """
        state = self.new_state()
        state.fill(tables)
        return state

    def process(
        self, frame: pl.DataFrame, state: DetectionState, rules: Sequence[RuleInForce] = (), now: int | None = None
    ) -> tuple[pl.DataFrame, DetectionState]:
        """Judges all rows of a frame, and learns from them.

        A machine with two or more metrics at a window end also gets a joined verdict there, with the metric `JOINED`.
        If expected windows are missing, the first of them gets a verdict of kind *absence* (`AbsenceWatch`). When the
        kind of an incident is decided, there is a further verdict on its worst window, with revision 1; that window may
        belong to an earlier call.

        Args:
            frame: Rows in any order: ``entity``, ``metric``, ``window_start``, ``window_end`` (epoch milliseconds),
                ``value``, and optionally ``kind`` (of the metric) and ``count`` (samples in the window). A value that
                is null, NaN or infinite is missing.
            state: The state, from `new_state` or an earlier call; callers must continue with the returned state.
            rules: The rules, with the times in which they are in force.
            now: The watermark, epoch milliseconds: no later row ends before it. ``None`` if it is not known; then the
                absence of a whole machine is announced only when the machine is back.

        Returns:
            The verdicts, with the columns of `SCHEMA`, in order of window end, machine and metric; and the state.
        """
        if frame.is_empty():
            absent = self._absences(self.absence.overdue(state, now), state)
            self._gone(state, now)
            return self._ruled(rules, absent, state), state
        frame, series, entities, step = _in_order(frame, state)
        sent = _Rows(series, entities, *(frame[name].to_numpy() for name in ("window_start", "window_end", "value")))
        came = np.flatnonzero(np.isfinite(sent.value))
        heard = self.absence.arrived(
            state, series[came], entities[came], step[came], sent.end[came], sent.end[came] - sent.time[came]
        )
        back = np.full((2, frame.height), NEVER)
        back[:, came] = heard.series, heard.machine
        # the first window after an absence may be cut short, so that its values are neither judged nor learned
        rows = sent._replace(value=np.where((back != NEVER).any(axis=0), np.nan, sent.value))
        ruled = effects(rules, frame)
        of_series, standing = self._judge(state, rows, ruled, about(frame, self.family))
        verdicts = RowVerdicts(of_series, standing.onset, _metrics(step, entities), ruled)
        verdicts.recover(came, heard.series)
        joined = self._together(state, rows, step, of_series, ruled, back[1])
        if self.says:
            for part in steps(step):
                returned = back[0, part] != NEVER
                believe_series(state, sent.part(part), of_series.part(part), standing.part(part), returned)
            believe_machines(state, joined, step, rows.end, back[1])
        result = self._dated_back(with_nulls(verdicts.frame(frame)), verdicts.onset, verdicts.turned, state)
        absences = np.concatenate([heard.absences, self.absence.overdue(state, now)])
        by_machine = with_nulls(joined_frame(frame, verdicts.numbers, joined))
        result = pl.concat([result, by_machine, self._absences(absences, state)])
        self._gone(state, now)
        return self._ruled(rules, result.sort("window_end", "entity", "metric", maintain_order=True), state), state

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
        verdicts = self._absent(absences, state)
        if self.says and verdicts.height:
            state.absent.append(believed_absent(verdicts))
        return verdicts

    def _gone(self, state: DetectionState, now: int | None) -> None:
        """Says of what has sent nothing for a day that it is no longer expected."""
        if self.says and now is not None and (gone := self.absence.gone(state, now)).height:
            state.absent.append(believed_absent(gone))

    def _absent(self, absences: Table, state: DetectionState) -> pl.DataFrame:
        absent = self.absence.verdicts(absences, state, JOINED)
        if absent.is_empty():
            return pl.DataFrame(schema=SCHEMA)
        evidence = {name: pl.lit(0.0) for name in CHANNELS} | {"absence": pl.col("absence")}
        fixed = {
            "metric_kind": pl.lit("gauge"),
            "kind": pl.lit(Kind.ABSENCE.value),
            "incident_state": pl.lit(Course.OPEN.value),
            "evidence": pl.struct([value.alias(name) for name, value in evidence.items()]),
            "revision": pl.lit(0, pl.Int64),
        }
        missing = {name: pl.lit(None, kind) for name, kind in SCHEMA.items() if name not in {*absent.columns, *fixed}}
        return absent.with_columns(**fixed, **missing).select(*SCHEMA)

    def _judge(
        self, state: DetectionState, rows: _Rows, ruled: Effects | None, about: About
    ) -> tuple[SeriesVerdicts, Standing]:
        """The verdicts on the metrics. The models learn from each value unless a rule forbids it."""
        day_off, taught = (ruled.day_off, ~ruled.skip_learning) if ruled else (None, None)
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
        joint, first = _in_company(step, rows.owner, (back != NEVER) & several)
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


def _in_company(step: Ints, owner: Ints, alone: Flags) -> tuple[Ints, Ints]:
    """The rows whose machine has other rows in the same step, which are next to them, and where each machine begins.

    Args:
        step: The number of the step of each row.
        owner: The machine of each row.
        alone: True for rows that count even if their machine has no other row in the step.

    >>> step, owner = np.array([0, 0, 0, 1, 1, 2]), np.array([4, 5, 5, 4, 4, 5])
    >>> _in_company(step, owner, step == 2)
    (array([1, 2, 3, 4, 5]), array([0, 2, 4]))
    """
    begins = _begins(step, owner)
    rows = np.flatnonzero(~(begins[:-1] & begins[1:]) | alone)
    return rows, np.flatnonzero(begins[rows])


def _metrics(step: Ints, owner: Ints) -> Ints:
    """How many rows of the same machine are in the step of each row.

    >>> _metrics(np.array([0, 0, 0, 1, 1, 2]), np.array([4, 5, 5, 4, 4, 5]))
    array([1, 2, 2, 2, 2, 1])
    """
    counts = np.diff(np.flatnonzero(_begins(step, owner)))
    return np.repeat(counts, counts)


def _begins(step: Ints, owner: Ints) -> Flags:
    """True for the first row of each machine in each step, and once more at the end, shape (n + 1,)."""
    begins = np.ones(len(step) + 1, np.bool_)
    begins[1:-1] = (step[1:] != step[:-1]) | (owner[1:] != owner[:-1])
    return begins


def _in_order(frame: pl.DataFrame, state: DetectionState) -> tuple[pl.DataFrame, Ints, Ints, Ints]:
    """Sorts the rows of a frame in the order in which they are judged.

    Returns:
        The sorted frame; and for each row the row of its series in the state, the row of its machine in the state, and
        the number of its step, each of shape (n,).
    """
    if "kind" not in frame.columns:
        frame = frame.with_columns(kind=pl.lit("gauge"))
    if "count" not in frame.columns:
        frame = frame.with_columns(count=pl.lit(1))
    text = [pl.col(name).cast(pl.String) for name in ("entity", "metric", "kind")]
    whole = [pl.col(name).cast(pl.Int64) for name in ("window_start", "window_end")]
    whole.append(pl.col("count").cast(pl.Int64).fill_null(1))
    frame = frame.select(*text, *whole, pl.col("value").cast(pl.Float64).fill_null(float("nan")))
    keys = frame.select("entity", "metric").unique().sort("entity", "metric")
    keys = keys.with_columns(owner=pl.col("entity").rle_id().cast(pl.Int64), series=pl.int_range(pl.len()))
    numbers = frame.join(keys, on=["entity", "metric"], how="left", maintain_order="left")
    series, owner = numbers["series"].to_numpy(), numbers["owner"].to_numpy()
    order, step = judging_order(series, owner, frame["window_end"].to_numpy())
    series = series[order]
    met = np.argsort(np.unique(series, return_index=True)[1])
    names = keys.select("entity", "metric")[met]
    rows, entities = np.empty(len(met), np.int64), np.empty(len(met), np.int64)
    rows[met] = state.series.rows(names)
    entities[met] = state.entities.rows(names)
    return frame[order], rows[series], entities[series], step
