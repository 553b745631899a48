"""The interface between the operator of the detectors and the judges: one judges metrics, the other logs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from engine.columns.tables import stacked
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detectors.control_messages import ControlMessages, LabelDue
from pipelines.jobs.detectors.worst import last_revisions

Action = tuple[int, Callable[[], None]]
"""(event time in epoch milliseconds, function to call when the windows that end up to then have been judged)"""

_Stop = tuple[int, int, Callable[[], None] | None]
"""(event time, order among actions at that time, action)"""


@dataclass(frozen=True)
class Work:
    """The work of one micro-batch for one shard.

    Attributes:
        ready: Windows that end in (before, now], with the columns that the models need.
        late: Windows that end at ``before`` or earlier, but can still be judged again.
        rules: The new rules, each with the event time from which on it is in force, epoch milliseconds.
        labels: The new labels.
        before: The watermark before the micro-batch, epoch milliseconds.
        now: The watermark after the micro-batch, epoch milliseconds.
    """

    ready: pl.DataFrame
    late: pl.DataFrame
    rules: list[tuple[int, Rule]]
    labels: list[LabelDue]
    before: int
    now: int


class ShardJudge(ABC):
    """JudgeConfig the windows of one shard in one micro-batch, with the models in the state of the shard.

    Attributes:
        beliefs: What is believed after `process` and was not written before: records of `SeriesState`.
        news: Verdicts that `process` does not report as novel, but that may explain others, and counts of machines:
            records of `News`.
    """

    beliefs = news = pl.DataFrame()

    @property
    @abstractmethod
    def base(self) -> int:
        """Windows that end at this instant (epoch milliseconds) or earlier can no longer be judged."""

    @abstractmethod
    def process(self, work: Work) -> pl.DataFrame:
        """JudgeConfig the windows and updates the models in the state.

        Returns:
            The verdicts to write; a frame without columns if there are none.
        """

    @property
    @abstractmethod
    def keys(self) -> int | None:
        """The number of known series or machines; ``None`` before the first window."""


class Judge(ABC):
    """JudgeConfig the windows of shards; it holds no state itself.

    Attributes:
        horizon: How far behind the watermark a window can be judged, milliseconds.
    """

    horizon: int

    @abstractmethod
    def windows(self, features: pl.DataFrame) -> pl.DataFrame:
        """Turns records of the input into the windows that the models judge."""

    @abstractmethod
    def open(self, state: ShardState, control: ControlMessages, before: int) -> ShardJudge:
        """Opens a shard for a micro-batch.

        Args:
            state: The state of the shard.
            control: The rules and labels that the shard knows.
            before: The watermark before the micro-batch, epoch milliseconds.
        """

    @abstractmethod
    def rescale(self, states: Rescaling) -> None:
        """Divides the models and the journal among another number of shards."""


class JudgeConfig(ABC):
    """The configuration of a judge."""

    @abstractmethod
    def judge(self, settings: DetectorSettings) -> Judge:
        """The judge of this configuration."""


def in_order(
    frame: pl.DataFrame,
    after: int,
    until: int,
    judge: Callable[[pl.DataFrame, int], pl.DataFrame],
    labels: Sequence[LabelDue],
    apply_label: Callable[[Label], None],
    actions: Sequence[Action] = (),
) -> pl.DataFrame:
    """JudgeConfig windows in order of event time; applies labels and runs actions between them, at their event times.

    Args:
        frame: The windows.
        after: All windows end after this instant, epoch milliseconds.
        until: All windows end at this instant or earlier, epoch milliseconds.
        judge: JudgeConfig some windows, all of which end at or before the instant in its second argument.
        labels: The labels that take effect in (after, until].
        apply_label: Applies a label to the models.
        actions: Run after the labels of the same instant.

    Returns:
        The last revision of each verdict, with the column ``announced``: the end of the window with which the verdict
        was announced. A frame without columns if there are no verdicts.
    """
    verdicts, done, ends = [], after, pl.col("window_end")
    stops: list[_Stop] = [(due.takes_effect, 0, partial(apply_label, due.label)) for due in labels]
    stops += [(time, 1, action) for time, action in actions]
    for stop, _, action in [*sorted(stops, key=lambda s: s[:2]), (until, 2, None)]:
        windows = frame.filter((ends > done) & (ends <= stop)) if frame.height else frame
        judgements = judge(windows, stop)
        if judgements.height:
            verdicts.append(judgements.with_columns(announced=pl.when(ends <= done).then(stop).otherwise(ends)))
        done = stop
        if action:
            action()
    return last_revisions(stacked(*verdicts))
