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
from pipelines.jobs.detect.metrics.context import Contexts
from pipelines.jobs.detect.metrics.families import about
from pipelines.jobs.detect.metrics.judging_order import judging_order
from pipelines.jobs.detect.metrics.machines import Machines, new_columns, new_slots
from pipelines.jobs.detect.metrics.state import DetectionState
from pipelines.jobs.detect.metrics.verdict_frames import (
    CHANNELS,
    COURSES,
    EXPERTS,
    IN_BRIEF,
    KINDS,
    LATER,
    NO_INCIDENTS,
    NUMBERS,
    SCHEMA,
    JoinedStep,
    joined_frame,
    known,
    nulls,
)
from pipelines.jobs.detect.reported import followed, new_column
from pipelines.jobs.detect.rules import Effects, applied, effects
from pipelines.jobs.detect.worst import revisions, unusual, worst

_COMBINED = ("point", "window", "record", "change")
"""Those of them that make up a metric's part of the joined verdict."""


class _Values(NamedTuple):
    """The values of one turn: rows of entity and series, time, value, onset; what is judged, what is learned of it."""

    owner: Ints
    series: Ints
    time: Ints
    value: Array
    onset: Ints
    seen: Array | None = None
    learned: Array | None = None


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
        frame, series, entities, turn = _in_order(frame, state)
        time, value = frame["window_start"].to_numpy(), frame["value"].to_numpy()
        window_end, told = frame["window_end"].to_numpy(), effects(rules, frame)
        beforehand = about(frame, self.family)
        numbers = {name: np.zeros(len(time)) for name in (*NUMBERS, *CHANNELS) if name != "actual"}
        believed, expected = ({name: np.empty(len(time)) for name in EXPERTS} for _ in range(2))
        codes, since, turned, incident, onset = (np.empty(len(time), np.int64) for _ in range(5))
        joined: list[JoinedStep | None] = []
        contexts = Contexts()
        absences: list[Absences] = []

        starts = np.flatnonzero(np.concatenate([[True], turn[1:] != turn[:-1]]))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(time)], strict=True):
            part = slice(start, end)
            ruled = told.part(part) if told else None
            verdicts = self._judge(state, series[part], time[part], value[part], ruled, beforehand.part(part))
            for name in ("record_score", "probability", "typical", "lower", "upper"):
                numbers[name][part] = getattr(verdicts, name)
            for name, channel in verdicts.evidence.items():
                numbers[name][part] = channel
            for name in EXPERTS:
                believed[name][part], expected[name][part] = verdicts.experts[name], verdicts.expected[name]
            expected["hour"][part][verdicts.context["days"] != 1] = np.nan
            codes[part], since[part], incident[part] = verdicts.kind, verdicts.since, verdicts.incident
            turned[part] = np.where(ruled.skip_learning, -1, verdicts.turned) if ruled else verdicts.turned
            onset[part] = self.detector.onset(state.series.columns, series[part])
            contexts.add(start, verdicts)
            if end - start > 1:
                evidence = combine([verdicts.evidence[name] for name in _COMBINED])
                judged = np.isfinite(value[part]) & (verdicts.kind != Kind.LEARNING.code)
                there = np.where(np.isfinite(value[part]), value[part], np.nan)
                values = _Values(entities[part], series[part], time[part], there, verdicts.onset)
                if ruled:
                    muted = ruled.muted(value[part], verdicts.typical)
                    values = values._replace(
                        seen=np.where(muted, np.nan, there),
                        learned=np.where(ruled.skip_learning, np.nan, there),
                    )
                    judged &= ~muted
                joined.append(self._join(state, values, evidence=evidence, judged=judged, start=start))
            came = start + np.flatnonzero(np.isfinite(value[part]))
            arrivals = self.absence.arrived(
                state, series[came], entities[came], window_end[came], window_end[came] - time[came]
            )
            absences += arrivals.absences
            back = (arrivals.series != NEVER) & (codes[came] == Kind.NORMAL.code)
            codes[came[back]], since[came[back]] = Kind.RECOVERED.code, arrivals.series[back]
            incident[came[back]] = Course.CLOSED.code
            contexts.absent(came[back])
            if joined and joined[-1] and joined[-1].rows[0] >= start:
                _recover(joined[-1].made, entities[came], arrivals.machine)

        kinds = KINDS.gather(codes)
        news = pl.Series(onset != NEVER) | ~kinds.is_in(QUIET_KINDS)
        result = (
            frame.select("entity", "metric", metric_kind="kind", window_start="window_start", window_end="window_end")
            .with_columns(
                kind=kinds,
                actual=frame["value"],
                since=pl.Series(since),
                incident_state=COURSES.gather(incident),
                evidence=pl.DataFrame({name: numbers[name] for name in CHANNELS}).to_struct(),
                experts=_news(news, believed, believed),
                expected=_news(news, expected, believed),
                context=contexts.column(len(time)),
                **nulls("decided", "influencers", *IN_BRIEF, *LATER),
                revision=pl.lit(0, pl.Int64),
                **{name: pl.Series(numbers[name]) for name in NUMBERS if name != "actual"},
            )
            .select(*SCHEMA)
        )
        result = self._dated_back(known(result), onset, turned, state)
        absences += self.absence.overdue(state, now)
        others = [known(part) for part in joined_frame(frame, numbers, [made for made in joined if made])]
        result = pl.concat([result, *others, self._absences(absences, state)])
        return self._ruled(rules, result.sort("window_end", "entity", "metric", maintain_order=True), state), state

    def _ruled(self, rules: Sequence[RuleInForce], verdicts: pl.DataFrame, state: DetectionState) -> pl.DataFrame:
        """The verdicts as the rules would have them reported."""
        ruled = applied(rules, verdicts)
        first = pl.col("revision") == 0
        told = followed(ruled.filter(first), {JOINED: state.entities, None: state.series})
        again = ruled.filter(~first)
        return pl.concat([told, again]) if again.height else told

    def _dated_back(self, verdicts: pl.DataFrame, onset: Ints, turned: Ints, state: DetectionState) -> pl.DataFrame:
        """With what incidents turned out to be; of open ones the worst window is kept.

        Args:
            verdicts: On metrics.
            onset: When the incident began that is open after each, told of or not; -1: none is.
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
        """Verdicts on the metrics of one turn; learned is what no rule says not to."""
        columns = state.series.columns
        if ruled is None:
            return self.detector.step(columns, series, time, value, None, known)
        with _kept(columns, series[ruled.skip_learning]):
            return self.detector.step(columns, series, time, value, ruled.day_off, known)

    def _join(
        self, state: DetectionState, values: _Values, *, evidence: Array, judged: Flags, start: int
    ) -> JoinedStep | None:
        """Joined verdicts on the entities with two or more metrics in one turn."""
        own = values.owner
        starts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
        sizes = np.diff(np.concatenate([starts, [len(own)]]))
        several = np.repeat(sizes > 1, sizes)
        if not several.any():
            return None
        rows = np.flatnonzero(several)
        together = self.machines.step(
            state,
            values.owner[rows],
            values.series[rows],
            values.time[rows],
            values.value[rows],
            None if values.seen is None else values.seen[rows],
            None if values.learned is None else values.learned[rows],
        )
        columns = state.entities.columns
        unlearned = own[:0] if values.learned is None else np.unique(own[np.isnan(values.learned)])
        with _kept(columns, unlearned):
            made = self.joined.join(
                columns, own[rows], values.time[rows], evidence[rows], judged[rows], together, values.onset[rows]
            )
        first = np.unique(own[rows], return_index=True)[1]
        return JoinedStep(rows[first] + start, rows + start, made)


def _recover(made: JoinedVerdicts, entities: Ints, since: Ints) -> None:
    """The joined verdicts on machines that were absent as a whole, and of which a window came again, say so."""
    verdicts, back = made.verdicts, since != NEVER
    onset = dict(zip(entities[back].tolist(), since[back].tolist(), strict=True))
    for index, entity in enumerate(made.entities.tolist() if onset else []):
        if entity in onset and verdicts.kind[index] == Kind.NORMAL.code:
            verdicts.kind[index], verdicts.since[index] = Kind.RECOVERED.code, onset[entity]
            made.incident[index] = Course.CLOSED.code


@contextmanager
def _kept(columns: Columns, rows: Ints) -> Iterator[None]:
    """Leaves some rows of the state as they were."""
    saved = {name: column[rows] for name, column in columns.items()} if len(rows) else {}
    yield
    for name, column in saved.items():
        columns[name][rows] = column


def _in_order(frame: pl.DataFrame, state: DetectionState) -> tuple[pl.DataFrame, Ints, Ints, Ints]:
    """The rows as they are judged; of each the state's row of its series and of its entity, and its turn."""
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
    order, turn = judging_order(series, owner, frame["window_end"].to_numpy())
    series = series[order]
    met = np.argsort(np.unique(series, return_index=True)[1])
    names = keys.select("entity", "metric")[met].rows()
    rows, entities = np.empty(len(met), np.int64), np.empty(len(met), np.int64)
    rows[met] = state.series.rows(names)
    entities[met] = state.entities.rows((name[0],) for name in names)
    return frame[order], rows[series], entities[series], turn


def _worst(table: pa.Table) -> pl.DataFrame:
    """Verdicts kept in the state; columns that are missing are null."""
    kept = pl.from_arrow(table)
    assert isinstance(kept, pl.DataFrame)
    return pl.concat([NO_INCIDENTS, kept], how="diagonal_relaxed").select(NO_INCIDENTS.columns)


def _news(news: pl.Series, columns: dict[str, Array], believed: dict[str, Array]) -> pl.Series:
    """Columns as one of structs; null where a verdict is no news, and fields of experts that had no say."""
    fields = [pl.when(pl.Series(believed[name] > 0)).then(pl.col(name).fill_nan(None)).alias(name) for name in columns]
    return pl.DataFrame(columns).select(pl.when(news).then(pl.struct(fields))).to_series()
