"""The detector as a job: features in event-time order through the models, verdicts out; what comes late is made good.

Between what it believed of a machine before a late window and now, all windows of that machine are judged again, as if
the late one had come on time; verdicts that become others are said again with the next revision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl
import pyarrow as pa

from engine.spec.operator import Operator, Progress
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.build import build
from engine.vectorized.ordered import Waiting
from engine.vectorized.processor import Processor, Results, StateCounts
from engine.vectorized.two_sided import stacked
from models.regimes.silence import NEVER_DUE
from pipelines.contracts.explanations import explained
from pipelines.contracts.globs import matches
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detect.control_messages import ControlMessages, LabelDue, split
from pipelines.jobs.detect.correction_journal import IDENTITY, CorrectionJournal, mark
from pipelines.jobs.detect.detection import Detection
from pipelines.jobs.detect.labels import tell
from pipelines.jobs.detect.peers import PeersKept
from pipelines.jobs.detect.rules import applied
from pipelines.jobs.detect.state import DetectionState
from pipelines.jobs.detect.verdict_frames import SCHEMA
from pipelines.jobs.detect.worst import last_revisions, reported

JUDGED = {"counter": "rate", "latency": "p95"}
"""Which statistic of a window is judged, by kind of metric; of all other kinds the mean."""

_Stop = tuple[int, int, Callable[[], None] | None]
"""An instant, the order of what is done then, and that."""


@dataclass(frozen=True)
class DetectorProcess(Operator):
    """The detector's configuration.

    Args:
        settings: The detector's settings.
        horizon: How far behind the watermark a window can be judged again, milliseconds.
    """

    settings: DetectorSettings
    horizon: int


class DetectorProcessor(Processor):
    """Holds windows back until the watermark has passed their end, so that the order of judging is that of event time.

    State: those of `Waiting`, `CorrectionJournal`, `PeersKept` and `ControlMessages`; segment ``models``, what the
    detector believes; and the note ``silent``, the watermark at which the next absence of a machine is certain.
    """

    def __init__(self, config: DetectorProcess) -> None:
        self.config, self.detection = config, Detection(config.settings)

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Judges all windows that are complete; those that came late again."""
        before, now = progress.before, progress.now
        believed = state.get("models")
        journal = CorrectionJournal(state, self.config.horizon, before)
        control = ControlMessages(state)
        features, news = split(batch)
        rules, labels = control.take(news, journal.base, before)
        ends = pl.col("window_end")
        late = features.filter(ends <= before)
        missed, late = late.filter(ends <= journal.base), newest(judged(late.filter(ends > journal.base)))
        ready = newest(judged(Waiting(state).release(features.filter(ends > before), ends, now)))
        past = [(start + 1, control.globs(rule.id)) for start, rule in rules if start < before]
        told_late = [due for due in labels if due.at <= before]
        cuts = journal.cuts(before, now)
        silent = now >= state.notes.get("silent", NEVER_DUE)
        nothing = not (ready.height or late.height or past or told_late or cuts or silent or control.due(before, now))
        results = pl.DataFrame()
        if not nothing:
            models = self.detection.from_tables(_arrow(believed)) if believed else self.detection.new_state()
            peers = PeersKept(state, self.config.horizon, self.detection.detector.newcomers)
            micro_batch = _MicroBatch(self.detection, journal, control, peers, self.config.settings.emit == "novel")
            if late.height or past or told_late:
                results = micro_batch.again(models, late, past, told_late, before)
            results = stacked(results, micro_batch.on(models, ready, before, now))
            state.put("models", pack({name: _frame(table) for name, table in models.to_tables().items()}))
            journal.forget(now, models.worst.select(IDENTITY))
            peers.forget(journal.base)
            state.notes["keys"] = len(models.series)
            state.notes["silent"] = self.detection.absence.next_due(models)
        control.save(journal.base)
        held = StateCounts(keys=state.notes.get("keys"))
        results = explained(results, self.config.settings.timezone) if results.height else results
        return Results(results, missed if missed.height else None, held)


@dataclass
class _MicroBatch:
    """One micro-batch of the detector."""

    detection: Detection
    journal: CorrectionJournal
    control: ControlMessages
    peers: PeersKept
    novel_only: bool

    def on(self, models: DetectionState, ready: pl.DataFrame, before: int, now: int) -> pl.DataFrame:
        """Judges the windows in (before, now]; what is to be said of them."""
        strangers = self.peers.strangers(ready, models)
        cuts = [(time, partial(self.peers.keep, time, models)) for time in self.peers.wanted(strangers, before, now)]
        cuts += [(cut, partial(self._keep, cut, models)) for cut in self.journal.cuts(before, now)]
        verdicts = self._run(models, ready, before, now, cuts, None, strangers)
        if self.novel_only:
            verdicts = verdicts.filter(reported())
        verdicts = self.journal.renumbered(verdicts)
        self.journal.write(ready, verdicts.select(*IDENTITY, "revision", "at", mark(verdicts)))
        return verdicts.select(*SCHEMA)

    def again(
        self,
        models: DetectionState,
        late: pl.DataFrame,
        rules: list[tuple[int, set[str]]],
        labels: list[LabelDue],
        before: int,
    ) -> pl.DataFrame:
        """Judges windows up to ``before`` again, of the entities that late windows, rules or labels concern.

        Returns:
            The verdicts that are others than they were, with the next revision.
        """
        known = pl.Series([entity for (entity,) in models.entities.keys()], dtype=pl.String)  # noqa: SIM118
        entities = {due.label.entity for due in labels} | set(late["entity"].to_list() if late.height else [])
        for glob in set().union(*(globs for _, globs in rules)):
            entities |= set(known.filter(pl.Series(matches(glob, known))).to_list())
        instants = [start for start, _ in rules] + [due.at for due in labels]
        instants += late["window_end"].to_list() if late.height else []
        time = self.journal.snapshot_before(min(instants))
        part = self._part(time, entities)
        past = self.journal.read(entities, time)
        inputs = newest(stacked(past.inputs, late))
        cuts = [(cut, partial(self._amend, cut, part, entities)) for cut in self.journal.snapshots_after(time)]
        first = applied(self.control.in_force(), part.worst.with_columns(at="window_end"))
        verdicts = self._run(part, inputs, time, before, cuts, entities, self.peers.strangers(inputs, part))
        models.replace(part, entities)
        if past.said.height and first.height:  # said again since, and perhaps not now: then it is as it was at first
            lost = first.join(past.said, on=IDENTITY, how="semi").join(verdicts, on=IDENTITY, how="anti")
            verdicts = pl.concat([verdicts, lost.select(verdicts.columns)])
        changed = self._changed(verdicts, past.said)
        self.journal.write(late, changed.select(*IDENTITY, "revision", "at", "mark"))
        return changed.select(*SCHEMA)

    def _run(
        self,
        models: DetectionState,
        frame: pl.DataFrame,
        after: int,
        until: int,
        cuts: Sequence[tuple[int, Callable[[], None]]],
        entities: Collection[str] | None,
        strangers: pl.DataFrame,
    ) -> pl.DataFrame:
        """Judges windows in order of event time; labels take effect, and snapshots are taken, in between."""
        rules, verdicts, done = self.control.in_force(), [], after
        dues = [due for due in self.control.due(after, until) if entities is None or due.label.entity in entities]
        stops: list[_Stop] = [(due.at, 0, partial(tell, self.detection, models, due.label)) for due in dues]
        stops += [(cut, 1, action) for cut, action in cuts]
        for stop, _, action in [*sorted(stops, key=lambda s: s[:2]), (until, 2, None)]:
            ends = pl.col("window_end")
            now = (ends > done) & (ends <= stop)
            some = frame.filter(now) if frame.height else frame
            self.peers.greet(models, strangers.filter(now))
            found = self.detection.process(some, models, rules, stop)[0]
            verdicts.append(found.with_columns(at=pl.when(ends <= done).then(stop).otherwise(ends)))
            done = stop
            if action:
                action()
        result = last_revisions(stacked(*verdicts))
        return result if result.height else pl.DataFrame(schema=SCHEMA | {"at": pl.Int64})

    def _keep(self, time: int, models: DetectionState) -> None:
        self.journal.keep(time, models.to_tables())

    def _part(self, time: int, entities: Collection[str]) -> DetectionState:
        """What was believed of some entities at the time of a snapshot."""
        tables = self.journal.believed(time)
        whole = self.detection.from_tables(tables) if tables else self.detection.new_state()
        return whole.only(entities)

    def _amend(self, time: int, part: DetectionState, entities: Collection[str]) -> None:
        tables = self.journal.believed(time)
        whole = self.detection.from_tables(tables) if tables else self.detection.new_state()
        whole.replace(part, entities)
        self.journal.keep(time, whole.to_tables())
        self.peers.keep(time, whole)

    def _changed(self, verdicts: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
        """Verdicts that are not what was said, with the next revision; retractions of those that are no more."""
        verdicts = self.journal.renumbered(verdicts)
        verdicts = verdicts.with_columns(self._mark(verdicts))
        if not said.height:
            return verdicts.filter(pl.col("mark") != 0) if self.novel_only else verdicts
        before = said.rename({"revision": "_revision", "mark": "_mark"})
        found = verdicts.join(before.drop("at"), on=IDENTITY, how="left", maintain_order="left")
        unsaid = pl.lit(0 if self.novel_only else None, pl.UInt32)
        new = found.filter(pl.col("mark").ne_missing(pl.coalesce("_mark", unsaid)))
        new = new.with_columns(revision=pl.max_horizontal("revision", pl.col("_revision") + 1)).drop(
            "_mark", "_revision"
        )
        gone = before.join(verdicts, on=IDENTITY, how="anti", maintain_order="left").filter(pl.col("_mark") != 0)
        if not gone.height:
            return new
        nothing = {"kind": "normal", "metric_kind": "gauge", "record_score": 0.0, "probability": 1.0}
        taken_back = gone.select(*IDENTITY, "at", revision=pl.col("_revision") + 1, mark=pl.lit(0, pl.UInt32))
        taken_back = taken_back.with_columns(pl.lit(value).alias(name) for name, value in nothing.items())
        return pl.concat([new, taken_back], how="diagonal_relaxed").select(new.columns)

    def _mark(self, verdicts: pl.DataFrame) -> pl.Series:
        marks = mark(verdicts)
        if self.novel_only:  # what is not reported is all the same
            marks = verdicts.select(reported()).to_series().cast(pl.UInt32) * marks
        return marks.alias("mark")


def judged(features: pl.DataFrame) -> pl.DataFrame:
    """The rows that the models judge: one value a series and window.

    >>> row = {"entity": "a", "metric": "m", "kind": "latency", "window_start": 0, "window_end": 10, "revision": 0}
    >>> judged(pl.DataFrame([row | {"count": 6, "mean": 1.0, "p95": 3.0, "rate": None}]))["value"].to_list()
    [3.0]
    """
    if not features.height:
        return pl.DataFrame()
    value = pl.col("mean")
    for kind, column in JUDGED.items():
        value = pl.when(pl.col("kind").cast(pl.String) == kind).then(pl.col(column).cast(pl.Float64)).otherwise(value)
    columns = ("entity", "metric", "kind", "window_start", "window_end", "revision", "count")
    names = [pl.col(c).cast(pl.String) for c in columns[:3]]
    return features.select(*names, *columns[3:], value.alias("value"))


def newest(rows: pl.DataFrame) -> pl.DataFrame:
    """The highest revision of each window."""
    if not rows.height or rows.select(pl.struct(IDENTITY).hash().n_unique()).item() == rows.height:
        return rows
    ordered = rows.sort("revision", "value", maintain_order=True, nulls_last=False)
    return ordered.unique(IDENTITY, keep="last", maintain_order=True)


def _arrow(value: bytes) -> dict[str, pa.Table]:
    return {name: frame.to_arrow() for name, frame in unpack(value).items()}


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


build.register(DetectorProcess, DetectorProcessor)
