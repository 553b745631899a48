"""The judge of metrics in a shard: judges windows in order of event time, and late ones as if they had been on time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import structlog

from engine.columns.tables import stacked
from engine.kept_memory import give_back
from engine.state.kept_arrays import KeptArrays
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from models.regimes.silence import NEVER_DUE
from pipelines.contracts.records.news import LIVING_EVERY
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.control_messages import ControlMessages
from pipelines.jobs.detectors.correction_journal import IDENTITY, CorrectionJournal
from pipelines.jobs.detectors.judging import Judge, JudgeConfig, ShardJudge, Work
from pipelines.jobs.detectors.metrics import ended
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.members import Members
from pipelines.jobs.detectors.metrics.micro_batch import Corrections, MicroBatch, newest
from pipelines.jobs.detectors.metrics.model_log import ModelLog
from pipelines.jobs.detectors.metrics.peers import PeersKept
from pipelines.jobs.detectors.metrics.state import DetectionState

log = structlog.get_logger()


@contextmanager
def opened(log: ModelLog, models: DetectionState, folder: Path | None) -> Iterator[DetectionState]:
    """The models of now, to be changed and written to the log; what they are then is kept for the next micro-batch.

    If the block raises an error, nothing is kept, and the next micro-batch reads what the log holds.

    Args:
        log: The models in the state.
        models: A new state, which is filled.
        folder: Where they are kept; ``None``: nowhere.
    """
    kept = _held(folder)
    try:
        if not (kept and _taken(kept, log, models)):
            log.read(models)
        yield models
        if kept and log.digest:
            arrays = {f"{n}.{key}": a for n, table in models.tables.items() for key, a in table.arrays().items()}
            frames = {name: table.index.keys for name, table in models.tables.items()}
            kept.put(log.digest, arrays, frames | {"worst": models.worst})
    finally:
        if kept:
            kept.close()


def _held(folder: Path | None) -> KeptArrays | None:
    try:
        return KeptArrays(folder) if folder else None
    except OSError:  # an attempt of this task that Spark has given up still holds it, or there is no such memory
        return None


def _taken(kept: KeptArrays, log: ModelLog, models: DetectionState) -> bool:
    if log.digest is None:
        return False
    kinds = {f"{n}.{key}": kind for n, table in models.tables.items() for key, kind in table.kinds().items()}
    arrays = kept.take(log.digest, kinds)
    if arrays is None:
        return False
    for name, table in models.tables.items():
        own = f"{name}."
        mine = {key.removeprefix(own): array for key, array in arrays.items() if key.startswith(own)}
        table.adopt(mine, kept.frame(name))
    models.worst = kept.frame("worst")
    models.stored()
    return True


STATISTICS = {"counter": "rate", "latency": "p95"}
"""The statistic of a window that is judged, by kind of metric; for all other kinds it is the mean."""


@dataclass(frozen=True)
class Metrics(JudgeConfig):
    """The configuration of the judge of metrics.

    Args:
        horizon: How far behind the watermark a window can be judged again, milliseconds.
        partitions: Number of partitions of the input. A new series starts from those of its metric in its partition.
        end: See `AbsenceWatch`.
    """

    horizon: int
    partitions: int = 1
    end: int | None = None

    def judge(self, settings: DetectorSettings) -> MetricsJudge:
        return MetricsJudge(settings, self)


class MetricsJudge(Judge):
    """JudgeConfig metrics: the mean, rate or 95th percentile of each series in each window.

    Args:
        settings: The detector's settings.
        config: The rest of the configuration.
    """

    def __init__(self, settings: DetectorSettings, config: Metrics) -> None:
        self.partitions, self.horizon = config.partitions, config.horizon
        horizon, partitions = config.horizon, config.partitions
        self.detection = Detection(settings, says=True, end=config.end, horizon=horizon, partitions=partitions)
        self.novel_only = settings.emit == "novel"

    def windows(self, features: pl.DataFrame) -> pl.DataFrame:
        return newest(rows_to_judge(features))

    def open(self, state: ShardState, control: ControlMessages, before: int) -> MetricsShard:
        return MetricsShard(self, state, control, before)

    def rescale(self, states: Rescaling) -> None:
        def divide(shard: int, time: int) -> None:
            ModelLog(states.after[shard]).replace(time, self._divided(states, shard, time))

        CorrectionJournal.rescale(states, divide)
        PeersKept.rescale(states)
        Members.rescale(states)
        for shard, state, _ in states.shards():
            models = self._divided(states, shard)
            if len(models.series) or len(models.entities):
                ModelLog(state).write(models)
                state.notes["keys"] = len(models.series)
                state.notes["silent"] = self.detection.next_due(models)

    def _divided(self, states: Rescaling, shard: int, time: int | None = None) -> DetectionState:
        """The models of those machines that belong to a new shard, as they are now or were at an instant."""
        models = self.detection.new_state()
        for source in states.sources(shard):
            old = self.detection.new_state()
            if ModelLog(source).read(old, time):
                names = pl.concat([table.index.keys["entity"] for table in (old.entities, old.series)])
                mine = names.unique(maintain_order=True).to_frame(states.key)
                own = set(mine.filter(states.mine(mine, shard))[states.key].to_list())
                models.replace(old.only(own), own)
        return models


class MetricsShard(ShardJudge):
    """JudgeConfig the metrics of one shard in one micro-batch.

    State: that of `ModelLog`, `CorrectionJournal`, `PeersKept` and `Members`; the note ``keys`` holds the number of
    series, and ``silent`` the watermark at which the next absence of a machine becomes certain, incidents of what has
    ended are closed, or a series is forgotten.
    """

    def __init__(self, judge: MetricsJudge, state: ShardState, control: ControlMessages, before: int) -> None:
        self.judge, self.state, self.control = judge, state, control
        self.log = ModelLog(state)
        self.journal = CorrectionJournal(state, judge.horizon, before, self.log)

    @property
    def base(self) -> int:
        return self.journal.base

    @property
    def keys(self) -> int | None:
        return self.state.notes.get("keys")

    def process(self, work: Work) -> pl.DataFrame:
        state, detection, before, now = self.state, self.judge.detection, work.before, work.now
        rules = [(start + 1, self.control.globs(rule.id)) for start, rule in work.rules if start < before]
        late = work.late.drop("prompt", strict=False)
        corrections = Corrections(late, rules, [due for due in work.labels if due.takes_effect <= before])
        if not (corrections or self._is_due(work)):
            return pl.DataFrame()
        peers = PeersKept(state, self.judge.horizon, detection.detector, self.judge.partitions)
        members = Members(state, self.judge.horizon)
        micro_batch = MicroBatch(detection, self.journal, self.log, self.control, peers, members, self.judge.novel_only)
        with opened(self.log, detection.new_state(), state.kept) as models:
            corrected = micro_batch.correct(models, corrections, before, now) if corrections else pl.DataFrame()
            verdicts = stacked(corrected, micro_batch.judge(models, work.ready, before, now))
            living = detection.fleet.living(models, work.ready, before, now)
            self.beliefs, self.news = models.beliefs(), stacked(living, members.of_news(verdicts, models))
            if models.forgotten:
                log.info("forgot what has ended", series_and_machines=sum(map(len, models.forgotten)))
            self.log.write(models)
            self.journal.forget(now, models.worst.select(IDENTITY))
            peers.forget(self.journal.base)
            members.save(now)
            state.notes["keys"] = len(models.series)
            state.notes["silent"] = detection.next_due(models)
            forgotten = bool(models.forgotten)
        if forgotten:  # once a day at most, the tables were written anew
            give_back()
        return verdicts

    def _is_due(self, work: Work) -> bool:
        """True if there are windows, labels, snapshots, absences, ends, series to forget or a count up to then."""
        counts = self.keys is not None and work.now // LIVING_EVERY > work.before // LIVING_EVERY
        silent = work.now >= self.state.notes.get("silent", NEVER_DUE)
        labels = [due(work.before, work.now) for due in (self.control.due, self.control.due_beside)]
        snapshots = self.journal.cuts(work.before, work.now)
        grid = (work.before // ended.EVERY * ended.EVERY, work.now // ended.EVERY * ended.EVERY)
        ends = self.control.ends.new or (grid[0] < grid[1] and self.control.ends.next(grid[0]) <= grid[1])
        return bool(work.ready.height or any(labels) or snapshots or silent or counts or ends)


def rows_to_judge(features: pl.DataFrame) -> pl.DataFrame:
    """Turns records of features into the rows that the models judge: one value per series and window.

    ``prompt`` is the value again, null if it did not come in time.

    >>> row = {"entity": "a", "metric": "m", "kind": "latency", "window_start": 0, "window_end": 10, "revision": 0}
    >>> rows_to_judge(pl.DataFrame([row | {"count": 6, "mean": 1.0, "p95": 3.0, "rate": None}]))["value"].to_list()
    [3.0]
    """
    if not features.height:
        return pl.DataFrame()
    value = pl.col("mean")
    for kind, column in STATISTICS.items():
        value = pl.when(pl.col("kind").cast(pl.String) == kind).then(pl.col(column).cast(pl.Float64)).otherwise(value)
    columns = ("entity", "metric", "kind", "window_start", "window_end", "revision", "count")
    names = [pl.col(c).cast(pl.String) for c in columns[:3]]
    prompt = pl.when(pl.col("prompt").fill_null(True)).then(value) if "prompt" in features.columns else value
    return features.select(*names, *columns[3:], value.alias("value"), prompt.alias("prompt"))
