"""One micro-batch of metrics: judges new windows in order of event time, and earlier ones again after a correction.

A late window, or a rule or label about the past, is a correction. All windows of the machines that it concerns, from a
snapshot before it until now, are then judged again, as if it had arrived on time. Verdicts that change are announced
again, with the next revision.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from engine.columns.tables import stacked
from engine.spec.duration import END_OF_TIME
from models.numbers.arrays import Ints
from pipelines.contracts.globs import matches
from pipelines.contracts.records import Label
from pipelines.contracts.records.novelty import JOINED, PEERS, UNTIL_FULL, judged_metric
from pipelines.jobs.detectors.control_messages import ControlMessages, LabelDue
from pipelines.jobs.detectors.correction_journal import IDENTITY, CorrectionJournal, mark
from pipelines.jobs.detectors.judging import Action, in_order
from pipelines.jobs.detectors.metrics import ended
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.members import Members
from pipelines.jobs.detectors.metrics.model_log import ModelLog
from pipelines.jobs.detectors.metrics.peers import PeersKept
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.detectors.metrics.verdict_frames import SCHEMA
from pipelines.jobs.detectors.rules import applied
from pipelines.jobs.detectors.worst import reported


def apply_label(detection: Detection, state: DetectionState, label: Label) -> None:
    """Applies a label to the state; a label on an unknown series changes nothing.

    - ``false_alarm`` and ``true``: from now on, evidence of that series (with the metric `_machine`: of the joined
      verdict) counts less, or more.
    - ``expected_change`` and ``new_normal``: the present level becomes typical, and the incident is closed; with the
      metric `_machine` this applies to all metrics of the machine.

    A label on a metric applies to it beside its peers, too; one on `_peers.` and a metric to that alone. One on when a
    metric is full: see `FillWatch.apply_label`.
    """
    _apply_beside_peers(detection, state, label)
    _apply_to_series(detection, state, label)


def _apply_to_series(detection: Detection, state: DetectionState, label: Label) -> None:
    if label.metric.endswith(UNTIL_FULL):
        detection.fill.apply_label(state, label)
        return
    if label.metric.startswith(PEERS):
        return
    machine = state.entities.find([(label.entity,)])
    series = _series(state, label)
    state.entities.touch(machine)
    state.series.touch(series)
    if label.verdict in ("false_alarm", "true"):
        whole = label.metric == JOINED
        rows, judge = (machine, detection.joined) if whole else (series, detection.detector)
        columns = (state.entities if whole else state.series).columns
        judge.learn_label(columns, rows, np.full(len(rows), label.verdict == "true"))
        return
    offset = detection.detector.accept(state.series.columns, series)
    detection.machines.shift(state, np.repeat(machine, len(series) if len(machine) else 0), series, offset)
    detection.joined.accept(state.entities.columns, machine)


def _apply_beside_peers(detection: Detection, state: DetectionState, label: Label) -> None:
    if label.metric.endswith(UNTIL_FULL):
        return
    own = label.model_copy(update={"metric": judged_metric(label.metric)})
    detection.fleet.apply_label(state, own, _series(state, own))


def _series(state: DetectionState, label: Label) -> Ints:
    if label.metric != JOINED:
        return state.series.find([(label.entity, label.metric)])
    return state.series.rows_of([label.entity])


@dataclass(frozen=True)
class Corrections:
    """The corrections of windows that were judged before; false if there are none.

    Attributes:
        late: Late windows, with the columns that the models need.
        rules: New rules that are in force in the past, each as (start in epoch milliseconds, globs of machines).
        labels: New labels that take effect in the past.
    """

    late: pl.DataFrame
    rules: list[tuple[int, set[str]]]
    labels: list[LabelDue]

    def __bool__(self) -> bool:
        return bool(self.late.height or self.rules or self.labels)

    @property
    def earliest(self) -> int:
        """The earliest event time that the corrections concern, epoch milliseconds."""
        ends: list[int] = self.late["window_end"].to_list() if self.late.height else []
        return min([start for start, _ in self.rules] + [due.takes_effect for due in self.labels] + ends)

    def entities(self, names: pl.Series) -> set[str]:
        """The machines that the corrections concern, among the known ones and those with late windows."""
        entities = {due.label.entity for due in self.labels}
        if self.late.height:
            entities |= set(self.late["entity"].to_list())
        for glob in set().union(*(globs for _, globs in self.rules)):
            entities |= set(names.filter(pl.Series(matches(glob, names))).to_list())
        return entities


@dataclass
class MicroBatch:
    """Judges the windows of one micro-batch in one shard.

    Args:
        detection: Judges frames of windows.
        journal: The windows that were judged before.
        log: The models in the state, also as they were.
        control: The rules and labels that the shard knows.
        peers: The sums of known series from which new series start.
        members: How many members sets of replicas have.
        novel_only: True if verdicts that are no news are not written.
    """

    detection: Detection
    journal: CorrectionJournal
    log: ModelLog
    control: ControlMessages
    peers: PeersKept
    members: Members
    novel_only: bool

    def judge(self, models: DetectionState, ready: pl.DataFrame, before: int, now: int) -> pl.DataFrame:
        """Judges the windows that end in (before, now], epoch milliseconds; returns the verdicts to announce."""
        self.members.take(ready)
        if self.control.ends.new:
            ended.reconsider(models, self.control.ends.of, before)
        new_series = self._new_series(ready, models, before, now)
        times = self.peers.times_to_keep(new_series, before, now)
        cuts = [(time, partial(self.peers.keep, time, models)) for time in times]
        cuts += [(cut, partial(self._keep, cut, models)) for cut in self.journal.cuts(before, now)]
        verdicts = self._run(models, ready, before, now, cuts, None, new_series)
        if self.novel_only:
            verdicts = verdicts.filter(reported())
        verdicts, judged = self.journal.renumbered(verdicts), ready.drop("prompt", strict=False)
        self.journal.write(judged, verdicts.select(*IDENTITY, "revision", "announced", mark(verdicts)))
        return verdicts.select(*SCHEMA)

    def correct(self, models: DetectionState, corrections: Corrections, before: int, now: int) -> pl.DataFrame:
        """Judges again the windows up to ``before`` of the machines that the corrections concern.

        Args:
            models: The models' state; changed.
            corrections: The corrections.
            before: The watermark before the micro-batch, epoch milliseconds.
            now: The watermark after it.

        Returns:
            The verdicts that differ from the announced ones, with a higher revision.
        """
        entities = corrections.entities(models.entities.index.keys["entity"])
        time = self.journal.snapshot_before(corrections.earliest)
        part = self._part(time, entities)
        past = self.journal.read(entities, time)
        inputs = newest(stacked(past.inputs, corrections.late))
        known = past.inputs.select("entity", "window_end") if past.inputs.height else pl.DataFrame()
        late = corrections.late
        self.members.take(late.join(known, on=known.columns, how="anti") if known.height and late.height else late)
        cuts = [(cut, partial(self._amend, cut, part, entities)) for cut in self.journal.snapshots_after(time)]
        first = applied(self.control.in_force(), part.worst.with_columns(announced="window_end"))
        new_series = self._new_series(inputs, part, time, before)
        verdicts = self._run(part, inputs, time, before, cuts, entities, new_series)
        beside = self.detection.fleet.kept(models, entities)
        models.replace(part, entities)
        self.detection.fleet.restore(beside)
        past = replace(past, verdicts=past.verdicts.filter(~of_peers())) if past.verdicts.height else past
        if past.verdicts.height and first.height:
            # a verdict that was revised before, but not this time, is announced again as it was at first
            lost = first.join(past.verdicts, on=IDENTITY, how="semi").join(verdicts, on=IDENTITY, how="anti")
            verdicts = pl.concat([verdicts, lost.select(verdicts.columns)])
        changed = self._changed(verdicts, past.verdicts, now)
        self.journal.write(corrections.late, changed.select(*IDENTITY, "revision", "announced", "mark"))
        return changed.select(*SCHEMA)

    def _run(
        self,
        models: DetectionState,
        frame: pl.DataFrame,
        after: int,
        until: int,
        actions: Sequence[Action],
        entities: Collection[str] | None,
        new_series: pl.DataFrame,
    ) -> pl.DataFrame:
        """Judges the windows that end in (after, until]; returns columns of `SCHEMA`, and ``announced``."""
        rules, done, ends = self.control.in_force(), after, self.control.ends
        considered = after // ended.EVERY * ended.EVERY

        def judge(windows: pl.DataFrame, stop: int) -> pl.DataFrame:
            nonlocal done, considered
            new = new_series.filter(pl.col("window_end").is_between(done, stop, closed="right"))
            new = new.sort("window_end").unique(IDENTITY[:2], keep="first", maintain_order=True) if new.height else new
            self.peers.start(models, new.filter(pl.Series(~models.series.has(new), dtype=pl.Boolean)))
            done = stop
            beside = entities is None
            verdicts = self.detection.process(windows, models, rules, stop, self._on_purpose, beside)[0]
            if stop not in closing:
                return verdicts
            if ends.next(considered) <= stop:  # said of what was absent before
                ended.reconsider(models, ends.of, stop)
            considered = stop
            closed = self.detection.close(models, stop, beside)
            return pl.concat([verdicts, closed]) if closed.height else verdicts

        forgetting = self.detection.forgetting
        times = forgetting.times(models, frame, after, until)
        closing: list[int] = []
        if until >= considered + ended.EVERY and (self.members or ends):
            closing = ended.times(models, frame, after, until, self.detection.absence.end, ends.next(considered))
        actions = [
            *((time, partial(forgetting.forget, models, time, self.peers.workloads)) for time in times),
            *((time, _nothing) for time in closing),
            *actions,
        ]
        if entities is None:  # nothing is judged again there
            beside = self.control.due_beside(after, until)
            actions += [(d.beside, partial(_apply_beside_peers, self.detection, models, d.label)) for d in beside]
        dues = [due for due in self.control.due(after, until) if entities is None or due.label.entity in entities]
        result = in_order(frame, after, until, judge, dues, partial(_apply_to_series, self.detection, models), actions)
        return result if result.height else pl.DataFrame(schema=SCHEMA | {"announced": pl.Int64})

    def _on_purpose(self, entity: str, last: int, due: int, usual: int) -> bool:
        return self.control.ends.of(entity, last, due, usual) or self.members.goes_on(entity, last, due, usual)

    def _new_series(self, windows: pl.DataFrame, models: DetectionState, after: int, until: int) -> pl.DataFrame:
        """The series that begin in (after, until], see `PeersKept.unknown_series`; known ones may begin anew."""
        forgetting = self.detection.forgetting
        anew = windows.clear()
        if windows.height and forgetting.times(models, windows, after, until):
            anew = forgetting.returning(models, windows)
        return self.peers.unknown_series(windows, models, anew)

    def _keep(self, time: int, models: DetectionState) -> None:
        self.log.keep(time, models)
        self.journal.keep(time)

    def _part(self, time: int, entities: Collection[str]) -> DetectionState:
        """The models' state of some machines at the time of a snapshot."""
        return self._whole(time).only(entities)

    def _whole(self, time: int) -> DetectionState:
        """The models' state in a snapshot; a new one if there is none, as nothing was learned by then."""
        whole = self.detection.new_state()
        self.log.read(whole, time)
        return whole

    def _amend(self, time: int, part: DetectionState, entities: Collection[str]) -> None:
        whole = self._whole(time)
        whole.replace(part, entities)
        self.log.replace(time, whole)
        self.journal.keep(time)
        self.peers.keep(time, whole)

    def _changed(self, verdicts: pl.DataFrame, announced: pl.DataFrame, now: int) -> pl.DataFrame:
        """The verdicts that differ from the announced ones, with a higher revision: how long after the window that is.

        An announced verdict that no longer exists is retracted: its next revision is normal with a score of 0.
        """
        verdicts = self.journal.renumbered(verdicts)
        verdicts = verdicts.with_columns(self._mark(verdicts))
        if not announced.height:
            return verdicts.filter(pl.col("mark") != 0) if self.novel_only else verdicts
        before = announced.rename({"revision": "_revision", "mark": "_mark"})
        compared = verdicts.join(before.drop("announced"), on=IDENTITY, how="left", maintain_order="left")
        not_announced = pl.lit(0 if self.novel_only else None, pl.UInt32)
        new = compared.filter(pl.col("mark").ne_missing(pl.coalesce("_mark", not_announced)))
        until = now if now < END_OF_TIME else 0
        following = pl.max_horizontal(pl.col("_revision") + 1, until - pl.col("window_end"))
        revised = pl.when(pl.col("_revision").is_not_null()).then(pl.max_horizontal("revision", following))
        new = new.with_columns(revision=revised.otherwise("revision")).drop("_mark", "_revision")
        gone = before.join(verdicts, on=IDENTITY, how="anti", maintain_order="left").filter(pl.col("_mark") != 0)
        if not gone.height:
            return new
        scores = {"record_score": 0.0, "state_score": 0.0, "probability": 1.0}
        retraction = {"kind": "normal", "metric_kind": "gauge", **scores}
        taken_back = gone.select(*IDENTITY, "announced", revision=following, mark=pl.lit(0, pl.UInt32))
        taken_back = taken_back.with_columns(pl.lit(value).alias(name) for name, value in retraction.items())
        return pl.concat([new, taken_back], how="diagonal_relaxed").select(new.columns)

    def _mark(self, verdicts: pl.DataFrame) -> pl.Series:
        marks = mark(verdicts)
        if self.novel_only:  # all verdicts that are not reported count as equal
            marks = verdicts.select(reported()).to_series().cast(pl.UInt32) * marks
        return marks.alias("mark")


def _nothing() -> None:
    """An action that is only a stop."""


def of_peers() -> pl.Expr:
    """An expression: true for verdicts on a machine beside its peers, which no correction changes."""
    return pl.col("metric").cast(pl.String).str.starts_with(PEERS)


def newest(rows: pl.DataFrame) -> pl.DataFrame:
    """The last result of each window: that with the most samples, then that with the highest revision.

    Each late sample makes one more, whatever the micro-batches; revisions are counted, anew by an extractor that was
    restored from a savepoint.
    """
    if not rows.height or rows.select(pl.struct(IDENTITY).hash().n_unique()).item() == rows.height:
        return rows
    ordered = rows.sort("count", "revision", "value", maintain_order=True, nulls_last=False)
    if "prompt" in rows.columns:  # of those that came in time the last as well, whatever came later
        ordered = ordered.with_columns(pl.col("prompt").drop_nulls().last().over(IDENTITY))
    return ordered.unique(IDENTITY, keep="last", maintain_order=True)
