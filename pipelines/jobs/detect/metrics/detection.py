"""Verdicts on frames of values: the one code path of the streaming detector and of `newnormal score`.

Applies the models window end by window end, vectorised over the series in each; knows neither Spark nor Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from models.arrays import Array, Columns, Flags, Ints
from models.config import DetectorConfig
from models.course import Course
from models.detector import Detector
from models.evidence.combine import combine
from models.evidence.repeats import NEVER
from models.families.suited import About
from models.joined import Joined, JoinedVerdicts
from models.multivariate.config import MultivariateConfig
from models.verdicts import Kind, SeriesVerdicts
from pipelines.contracts.records.novelty import JOINED, QUIET_KINDS
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detect.control_messages import RuleInForce
from pipelines.jobs.detect.metrics.absence import Absences, AbsenceWatch
from pipelines.jobs.detect.metrics.families import about
from pipelines.jobs.detect.metrics.judging_order import judging_order
from pipelines.jobs.detect.metrics.machines import Machines, new_columns, new_slots
from pipelines.jobs.detect.metrics.row_verdicts import RowVerdicts
from pipelines.jobs.detect.metrics.state import DetectionState
from pipelines.jobs.detect.metrics.verdict_frames import (
    CHANNELS,
    KINDS,
    NO_INCIDENTS,
    SCHEMA,
    JoinedStep,
    joined_frame,
    known,
)
from pipelines.jobs.detect.reported import followed, new_column
from pipelines.jobs.detect.rules import Effects, applied, effects
from pipelines.jobs.detect.worst import revisions, unusual, worst

_COMBINED = ("point", "window", "record", "change")
"""The evidence channels of a metric that count for the joined verdict."""


class _Rows(NamedTuple):
    """Rows to judge: series and entity as rows of the state, start and end of the window (epoch ms), value."""

    series: Ints
    owner: Ints
    time: Ints
    end: Ints
    value: Array

    def part(self, rows: slice) -> _Rows:
        """Some of them."""
        return _Rows(self.series[rows], self.owner[rows], self.time[rows], self.end[rows], self.value[rows])


class Detection:
    """Judges and learns frames of values; holds no state, which is handed in and back.

    Args:
        settings: The detector's settings.
        config: The models' constants, if not those that the settings stand for: for benches.
    """

    def __init__(self, settings: DetectorSettings, config: DetectorConfig | None = None) -> None:
        config = config or DetectorConfig(threshold=settings.threshold, timezone=settings.timezone)
        self.detector, self.joined = Detector(config), Joined(config)
        self.machines = Machines(MultivariateConfig(warm_up=config.learning))
        self.absence = AbsenceWatch(config.threshold)
        self.family, self.unusual = settings.family, unusual(config.threshold)

    def new_state(self) -> DetectionState:
        """The state before anything was seen."""
        return DetectionState(
            lambda n: self.detector.new_state(n) | new_slots(n) | self.absence.new_series(n) | new_column(n),
            lambda n: self.joined.new_state(n) | new_columns(n) | self.absence.new_entities(n) | new_column(n),
            self.machines.new_tables(),
            NO_INCIDENTS,
        )

    def from_tables(self, tables: dict[str, pa.Table]) -> DetectionState:
        """Inverse of `DetectionState.to_tables`; columns that are missing get their defaults.

        Raises:
            NewnormalError: ``STATE_INVALID`` if a table is not of this kind.
        """
        state = self.new_state()
        if "worst" in tables:
            state.worst = _worst(tables["worst"])
        if "series" in tables:
            state.series.fill(tables["series"])
        if "entities" in tables:
            state.entities.fill(tables["entities"])
        for width, machines in state.machines.items():
            if f"machines-{width}" in tables:
                machines.fill(tables[f"machines-{width}"])
        return state

    def process(
        self,
        frame: pl.DataFrame,
        state: DetectionState,
        rules: Sequence[RuleInForce] = (),
        now: int | None = None,
    ) -> tuple[pl.DataFrame, DetectionState]:
        """Verdicts on all rows, in order of window end, entity and metric; and the state after them.

        An entity with two or more metrics at a window end gets a joined verdict there, metric `JOINED`. A window that
        was expected and did not come gets a verdict of kind *absence*, once, at the first such window (`AbsenceWatch`).

        Args:
            frame: Columns ``entity``, ``metric``, ``window_start``, ``window_end`` (epoch ms), ``value``, and if there
                ``kind`` (of the metric) and ``count`` (samples of the window), in any order. A null, NaN or infinite
                value is missing.
            state: As from `new_state` or an earlier call; it is used up: go on with the one returned.
            rules: Those in force at some time.
            now: The watermark, which no later row is behind; ``None``: it is not known, and whole machines that are
                silent are told of only when they are back.

        What an incident turns out to be is said of the window in which it was worst, maybe one of an earlier call: as a
        further verdict on that window, of revision 1.

        Returns:
            A frame of `SCHEMA`, and the state.
        """
        if frame.is_empty():
            return self._ruled(rules, self._absences(self.absence.overdue(state, now), state), state), state
        frame, series, entities, step = _in_order(frame, state)
        rows = _Rows(series, entities, *(frame[name].to_numpy() for name in ("window_start", "window_end", "value")))
        ruled, beforehand = effects(rules, frame), about(frame, self.family)
        verdicts, joined, absences = RowVerdicts(frame.height), list[JoinedStep](), list[Absences]()
        starts = np.flatnonzero(np.concatenate([[True], step[1:] != step[:-1]]))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), frame.height], strict=True):
            part = slice(start, end)
            made, found = self._step(
                state, rows.part(part), part, verdicts, ruled.part(part) if ruled else None, beforehand.part(part)
            )
            joined += [made] if made else []
            absences += found
        result = self._dated_back(known(verdicts.frame(frame)), verdicts.onset, verdicts.turned, state)
        absences += self.absence.overdue(state, now)
        others = [known(part) for part in joined_frame(frame, verdicts.numbers, joined)]
        result = pl.concat([result, *others, self._absences(absences, state)])
        return self._ruled(rules, result.sort("window_end", "entity", "metric", maintain_order=True), state), state

    def _step(
        self,
        state: DetectionState,
        rows: _Rows,
        part: slice,
        verdicts: RowVerdicts,
        ruled: Effects | None,
        beforehand: About,
    ) -> tuple[JoinedStep | None, list[Absences]]:
        """Judges and learns the rows of one step: one window end of each entity, one row of each series.

        Args:
            state: Changed.
            rows: The rows.
            part: Where they are in the frame.
            verdicts: Filled in there.
            ruled: What the rules do to them.
            beforehand: What is known of their metrics.

        Returns:
            The joined verdicts, if there are any; the absences that these windows reveal.
        """
        made = self._judge(state, rows.series, rows.time, rows.value, ruled, beforehand)
        verdicts.take(part, made, ruled, self.detector.onset(state.series.columns, rows.series))
        joined = self._join(state, rows, made, ruled, part.start) if len(rows.value) > 1 else None
        came = np.flatnonzero(np.isfinite(rows.value))
        length = rows.end[came] - rows.time[came]
        arrivals = self.absence.arrived(state, rows.series[came], rows.owner[came], rows.end[came], length)
        verdicts.recover(part.start + came, arrivals.series)
        if joined:
            _recover(joined.made, rows.owner[came], arrivals.machine)
        return joined, arrivals.absences

    def _ruled(self, rules: Sequence[RuleInForce], verdicts: pl.DataFrame, state: DetectionState) -> pl.DataFrame:
        """The verdicts as they are reported under the rules in force."""
        ruled = applied(rules, verdicts)
        first = pl.col("revision") == 0
        reported = followed(ruled.filter(first), {JOINED: state.entities, None: state.series})
        again = ruled.filter(~first)
        return pl.concat([reported, again]) if again.height else reported

    def _dated_back(self, verdicts: pl.DataFrame, onset: Ints, turned: Ints, state: DetectionState) -> pl.DataFrame:
        """With what incidents turned out to be; of open ones the worst window is kept.

        Args:
            verdicts: On metrics.
            onset: When the incident began that is open after each verdict, announced or not; -1: none is.
            turned: Codes of `Kind`: what the incident that began at ``since`` turned out to be; -1: nothing.
            state: Changed.
        """
        inside = verdicts.with_columns(onset=pl.Series(onset)).filter(pl.Series(onset != NEVER))
        inside = pl.concat([state.worst, inside])
        if inside.is_empty():
            return verdicts
        if (turned >= 0).any():
            decided = verdicts.filter(pl.Series(turned >= 0)).with_columns(onset="since")
            decided = decided.with_columns(turned=KINDS.gather(turned[turned >= 0]))
            verdicts = pl.concat([verdicts, revisions(decided, inside, self.unusual).drop("onset")])
        rows = state.series.find(inside.select("entity", "metric").iter_rows())
        is_open = self.detector.onset(state.series.columns, rows) == inside["onset"].to_numpy()
        state.worst = worst(inside.filter(pl.Series(is_open)), self.unusual)
        quiet = pl.col("kind").is_in(QUIET_KINDS)
        hidden = [pl.when(~quiet).then(name).alias(name) for name in ("experts", "expected", "context")]
        return verdicts.with_columns(hidden)

    def _absences(self, absences: list[Absences], state: DetectionState) -> pl.DataFrame:
        known = self.absence.verdicts(absences, state, JOINED)
        if known.is_empty():
            return pl.DataFrame(schema=SCHEMA)
        evidence = {name: pl.lit(0.0) for name in CHANNELS} | {"absence": pl.col("absence")}
        fixed = {
            "metric_kind": pl.lit("gauge"),
            "kind": pl.lit(Kind.ABSENCE.value),
            "incident_state": pl.lit(Course.OPEN.value),
            "evidence": pl.struct([value.alias(name) for name, value in evidence.items()]),
            "revision": pl.lit(0, pl.Int64),
        }
        missing = {name: pl.lit(None, kind) for name, kind in SCHEMA.items() if name not in {*known.columns, *fixed}}
        return known.with_columns(**fixed, **missing).select(*SCHEMA)

    def _judge(
        self, state: DetectionState, series: Ints, time: Ints, value: Array, ruled: Effects | None, known: About
    ) -> SeriesVerdicts:
        """Verdicts on the metrics of one step. The models learn from each value unless a rule forbids it."""
        columns = state.series.columns
        if ruled is None:
            return self.detector.step(columns, series, time, value, None, known)
        with _kept(columns, series[ruled.skip_learning]):
            return self.detector.step(columns, series, time, value, ruled.day_off, known)

    def _join(
        self, state: DetectionState, rows: _Rows, verdicts: SeriesVerdicts, ruled: Effects | None, start: int
    ) -> JoinedStep | None:
        """Joined verdicts on the entities with two or more metrics in one step.

        Args:
            state: Changed.
            rows: The rows of the step.
            verdicts: On their metrics.
            ruled: What the rules do to them.
            start: The first of them in the frame.
        """
        own = rows.owner
        starts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
        sizes = np.diff(np.concatenate([starts, [len(own)]]))
        some = np.flatnonzero(np.repeat(sizes > 1, sizes))
        if not len(some):
            return None
        value = np.where(np.isfinite(rows.value), rows.value, np.nan)
        judged: Flags = np.isfinite(value) & (verdicts.kind != Kind.LEARNING.code)
        seen = learned = None
        unlearned = own[:0]
        if ruled:
            muted = ruled.muted(rows.value, verdicts.typical)
            judged &= ~muted
            seen, learned = np.where(muted, np.nan, value)[some], np.where(ruled.skip_learning, np.nan, value)[some]
            unlearned = np.unique(own[ruled.skip_learning | np.isnan(value)])
        together = self.machines.step(state, own[some], rows.series[some], rows.time[some], value[some], seen, learned)
        evidence = combine([verdicts.evidence[name] for name in _COMBINED])
        columns = state.entities.columns
        with _kept(columns, unlearned):
            made = self.joined.join(
                columns, own[some], rows.time[some], evidence[some], judged[some], together, verdicts.onset[some]
            )
        first = np.unique(own[some], return_index=True)[1]
        return JoinedStep(some[first] + start, some + start, made)


def _recover(made: JoinedVerdicts, entities: Ints, since: Ints) -> None:
    """Joined verdicts on machines that were absent as a whole and sent a window again become recoveries."""
    verdicts, back = made.verdicts, since != NEVER
    onset = dict(zip(entities[back].tolist(), since[back].tolist(), strict=True))
    for index, entity in enumerate(made.entities.tolist() if onset else []):
        if entity in onset and verdicts.kind[index] == Kind.NORMAL.code:
            verdicts.kind[index], verdicts.since[index] = Kind.RECOVERED.code, onset[entity]
            made.incident[index] = Course.CLOSED.code


@contextmanager
def _kept(columns: Columns, rows: Ints) -> Iterator[None]:
    """Restores some rows of the state at the end of the block."""
    saved = {name: column[rows] for name, column in columns.items()} if len(rows) else {}
    yield
    for name, column in saved.items():
        columns[name][rows] = column


def _in_order(frame: pl.DataFrame, state: DetectionState) -> tuple[pl.DataFrame, Ints, Ints, Ints]:
    """The rows in order of judging; for each the state's rows of its series and entity, and the number of its step."""
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
    names = keys.select("entity", "metric")[met].rows()
    rows, entities = np.empty(len(met), np.int64), np.empty(len(met), np.int64)
    rows[met] = state.series.rows(names)
    entities[met] = state.entities.rows((name[0],) for name in names)
    return frame[order], rows[series], entities[series], step


def _worst(table: pa.Table) -> pl.DataFrame:
    """Verdicts kept in the state; columns that are missing are null."""
    kept = pl.from_arrow(table)
    assert isinstance(kept, pl.DataFrame)
    return pl.concat([NO_INCIDENTS, kept], how="diagonal_relaxed").select(NO_INCIDENTS.columns)
