"""The detector of logs as a job: counts of log lines in event-time order through the models, verdicts out."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from engine.spec.operator import Operator, Progress
from engine.state.segments import ShardState, pack, unpack
from engine.vectorized.build import build
from engine.vectorized.ordered import Waiting
from engine.vectorized.processor import Processor, Results
from pipelines.contracts.explanations import explained
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detect.control_messages import ControlMessages, split
from pipelines.jobs.detect.logs.detection import LogDetection
from pipelines.jobs.detect.logs.detection_state import METRIC
from pipelines.jobs.detect.reported import followed
from pipelines.jobs.detect.rules import applied
from pipelines.jobs.detect.worst import last_revisions, reported


@dataclass(frozen=True)
class LogDetectorProcess(Operator):
    """The configuration.

    Args:
        settings: The detector's settings.
        size: Length of the windows, milliseconds.
    """

    settings: DetectorSettings
    size: int


class LogDetectorProcessor(Processor):
    """Holds windows back until the watermark has passed their end, so that each is judged once and whole.

    State: those of `Waiting` and `ControlMessages`, and segment ``logs``, what is believed of each machine's log.
    """

    def __init__(self, config: LogDetectorProcess) -> None:
        self.emit, self.zone = config.settings.emit, config.settings.timezone
        self.detection = LogDetection(config.settings, config.size)

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Judges all windows that are complete; what comes for one that was judged is late."""
        before, now, late = progress.before, progress.now, None
        features, news = split(batch)
        control = ControlMessages(state)
        control.take(news, before, before)
        if features.height:
            behind = pl.col("window_end") <= before
            late, features = features.filter(behind), features.filter(~behind)
        ready = Waiting(state).release(features, pl.col("window_end"), now)
        rules, labels = control.in_force(), control.due(before, now)
        control.save(now)
        if not ready.height and not labels:
            return Results(pl.DataFrame(), late)
        believed, stored = self.detection.new_state(), state.get("logs")
        if stored:
            believed.fill(unpack(stored))
        text = pl.col("entity", "metric", "template").cast(pl.String)
        verdicts = self.detection.process(ready.with_columns(text), believed, rules, labels)
        if verdicts.height:
            verdicts = last_revisions(verdicts).sort("window_end", "entity", maintain_order=True)
            none = pl.lit(None, pl.List(pl.String))
            verdicts = verdicts.with_columns(rules=none, reported_by=none)
            verdicts = followed(applied(rules, verdicts), {METRIC: believed.machines})
        state.put("logs", pack(believed.to_frames()))
        if self.emit == "novel" and verdicts.height:
            verdicts = verdicts.filter(reported())
        return Results(explained(verdicts, self.zone) if verdicts.height else verdicts, late)


build.register(LogDetectorProcess, LogDetectorProcessor)
