"""The judge of logs in a shard: judges the windows of machines' logs in order of event time."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import polars as pl

from engine.spec.duration import NEVER
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState, pack, unpack
from pipelines.contracts.records import Label, News
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.control_messages import ControlMessages, LabelDue
from pipelines.jobs.detectors.judging import Judge, JudgeConfig, ShardJudge, Work, in_order
from pipelines.jobs.detectors.logs.detection import LogDetection
from pipelines.jobs.detectors.logs.state import METRIC, LogState
from pipelines.jobs.detectors.reported import followed
from pipelines.jobs.detectors.rules import applied
from pipelines.jobs.detectors.worst import reported

_WINDOWS = {
    **dict.fromkeys(("entity", "metric", "template", "example"), pl.String),
    **dict.fromkeys(("window_start", "window_end", "count", "severity"), pl.Int64),
}
"""The columns that the models need."""

_UNSEEN = log(100)
"""Evidence of lines that are new to a machine, in nats: fewer than one in a hundred of its windows has so much."""

_NEW_LINES = (
    (pl.col("kind") == "normal")
    & (pl.col("incident_state") != "closed").fill_null(True)
    & (pl.col("revision") == 0)  # a revision is news by itself
    & (pl.col("probability") < 1)  # no rule mutes it
    & (pl.col("evidence").struct.field("unseen") >= _UNSEEN)
    & pl.col("template").is_not_null()
)
"""An expression: true for verdicts that are no news, but may explain news of the machine's metrics."""

_NO_INCIDENT = {
    "since": pl.lit(None, pl.Int64),
    "incident_state": pl.lit(None, pl.String),
    **dict.fromkeys(("values", "clock", "metrics"), pl.lit(None, pl.Float64)),
    **dict.fromkeys(("full_earliest", "full_latest"), pl.lit(None, pl.Int64)),
}
_NO_NAMES = pl.lit(None, pl.List(pl.String))


@dataclass(frozen=True)
class Logs(JudgeConfig):
    """The configuration of the judge of logs.

    Args:
        size: Length of the windows, milliseconds.
    """

    size: int

    def judge(self, settings: DetectorSettings) -> LogJudge:
        return LogJudge(settings, self.size)


class LogJudge(Judge):
    """JudgeConfig each window of each machine's log once; records of a window that arrive after that are late.

    Args:
        settings: The detector's settings.
        size: See `Logs`.
    """

    horizon = 0

    def __init__(self, settings: DetectorSettings, size: int) -> None:
        self.detection, self.novel_only = LogDetection(settings, size), settings.emit == "novel"

    def windows(self, features: pl.DataFrame) -> pl.DataFrame:
        if not features.height:
            return pl.DataFrame(schema=_WINDOWS)
        return features.select(pl.col(name).cast(kind) for name, kind in _WINDOWS.items())

    def open(self, state: ShardState, control: ControlMessages, before: int) -> LogShard:
        return LogShard(self, state, control, before)

    def rescale(self, states: Rescaling) -> None:
        for shard, state, sources in states.shards():
            models = self.detection.new_state()
            for value in [value for source in sources if (value := source.get("logs"))]:
                old = self.detection.new_state()
                old.fill(unpack(value))
                keys = old.machines.keys()
                names = pl.DataFrame({states.key: [name for (name,) in keys]}, {states.key: pl.String})
                models.join(old, states.mine(names, shard).to_numpy())
            if models.judged_until is not None:
                state.put("logs", pack(models.to_frames()))
                state.notes["keys"] = len(models.machines)


class LogShard(ShardJudge):
    """JudgeConfig the logs of one shard in one micro-batch.

    State: the segment ``logs`` holds the models of the machines' logs; the note ``keys`` the number of machines.
    """

    def __init__(self, judge: LogJudge, state: ShardState, control: ControlMessages, before: int) -> None:
        self.judge, self.state, self.control, self._base = judge, state, control, before

    @property
    def base(self) -> int:
        return self._base

    @property
    def keys(self) -> int | None:
        return self.state.notes.get("keys")

    def process(self, work: Work) -> pl.DataFrame:
        self._base = work.now
        # a label on windows that were judged before takes effect now
        overdue = [LabelDue(due.label, work.before + 1) for due in work.labels if due.takes_effect <= work.before]
        labels = [*overdue, *self.control.due(work.before, work.now)]
        if not work.ready.height and not labels:
            return pl.DataFrame()
        models, stored = self.judge.detection.new_state(), self.state.get("logs")
        if stored:
            models.fill(unpack(stored))
        verdicts = self._judge(models, work, labels)
        self.state.put("logs", pack(models.to_frames()))
        self.state.notes["keys"] = len(models.machines)
        if not verdicts.height:
            return verdicts
        self.news = verdicts.filter(_NEW_LINES).with_columns(**_NO_INCIDENT).select(*News.model_fields)
        return verdicts.filter(reported()) if self.judge.novel_only else verdicts

    def _judge(self, models: LogState, work: Work, labels: list[LabelDue]) -> pl.DataFrame:
        """The verdicts, with the rules in force applied."""
        detection, rules = self.judge.detection, self.control.in_force()
        last = int(work.ready["window_end"].to_numpy().max(initial=NEVER))

        def judge(windows: pl.DataFrame, stop: int) -> pl.DataFrame:
            return detection.process(windows, models, rules, min(stop, last))

        def apply_label(label: Label) -> None:
            detection.labels.apply(models, label)

        verdicts = in_order(work.ready, work.before, work.now, judge, labels, apply_label)
        if not verdicts.height:
            return verdicts
        verdicts = verdicts.drop("announced").sort("window_end", "entity", maintain_order=True)
        verdicts = verdicts.with_columns(rules=_NO_NAMES, reported_by=_NO_NAMES)
        return followed(applied(rules, verdicts), {METRIC: models.machines})
