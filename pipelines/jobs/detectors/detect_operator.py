"""The operator of both detectors: passes windows in event-time order to a judge, and adds explanations to verdicts."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from engine.spec.operator import Operator, Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.build import build
from engine.vectorized.ordered import Waiting
from engine.vectorized.processor import Processor, Results, StateCounts
from engine.vectorized.windows.allowed_lateness import all_closed_until
from pipelines.contracts.explanations import explained
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.control_messages import ControlMessages, split
from pipelines.jobs.detectors.judging import JudgeConfig, Work
from pipelines.jobs.detectors.metrics.context import learned_from
from pipelines.jobs.detectors.severity import graded
from pipelines.jobs.detectors.surroundings import Around, Surroundings

_OVER = "__over"

PROMPT = "prompt"
"""Flag of windows that the watermark in the log of their own partition had not passed when they came."""

STATE = "state"
"""Name of the side output with what the detector believes of each series."""

NEWS = "news"
"""Name of the side output of news, from which incidents are made."""


@dataclass(frozen=True)
class Detect(Operator):
    """The configuration of a detector.

    Args:
        settings: The detector's settings.
        judges: Configuration of the judge: `Metrics` (`pipelines.jobs.detectors.metrics`) or `Logs`
            (`pipelines.jobs.detectors.logs`).
        around: Which ordinary verdicts are written, for ``detector.emit = context``; ``None`` for other settings.
    """

    settings: DetectorSettings
    judges: JudgeConfig
    around: Around | None = None


class DetectProcessor(Processor):
    """Holds windows back until the watermark has passed their end, so that they are judged in order of event time.

    State: that of `Waiting`, of `ControlMessages`, of the judge and of `Surroundings`.
    """

    def __init__(self, config: Detect) -> None:
        self.around = config.around
        self.zone, self.judge = config.settings.timezone, config.judges.judge(config.settings)

    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """JudgeConfig all windows whose end the watermark has passed; windows that can no longer be judged are late.

        A window is too late once the watermark in the log of its own partition has passed its end by the horizon of the
        judge. So that does not depend on micro-batches.
        """
        before, now, ends = progress.before, progress.now, pl.col("window_end")
        passed = progress.passed(batch.height)
        over = pl.Series(_OVER, all_closed_until(passed, self.judge.horizon))
        came = pl.Series(PROMPT, passed)
        features, messages = split(batch.with_columns(over, came))
        features = features.with_columns((ends > pl.col(PROMPT)).alias(PROMPT))
        control = ControlMessages(state)
        shard = self.judge.open(state, control, before)
        rules, labels = control.take(messages, shard.base, before, now)
        too_late = (ends <= shard.base) | (ends <= pl.col(_OVER))
        missed = features.filter(too_late).drop(_OVER, PROMPT)
        features = features.filter(~too_late).drop(_OVER)
        late = self.judge.windows(features.filter(ends <= before))
        ready = self.judge.windows(Waiting(state).release(features.filter(ends > before), ends, now))
        verdicts = shard.process(Work(ready, late, rules, labels, before, now))
        control.save(shard.base)
        if self.around:
            verdicts = Surroundings(self.around, state, before).chosen(verdicts, control.in_force(), now)
        else:
            Surroundings.drop(state)
        if verdicts.height:
            verdicts = learned_from(explained(graded(verdicts), self.zone))
        aside = {name: frame for name, frame in ((STATE, shard.beliefs), (NEWS, shard.news)) if frame.height}
        return Results(verdicts, missed if missed.height else None, StateCounts(keys=shard.keys), aside)

    def rescale(self, states: Rescaling) -> None:
        """Divides windows that wait, models and kept verdicts by machine; all shards know the same rules and labels."""
        states.log("held", lambda tables: tables["records"].height)
        ControlMessages.rescale(states)
        self.judge.rescale(states)
        Surroundings.rescale(states)


build.register(Detect, DetectProcessor)
