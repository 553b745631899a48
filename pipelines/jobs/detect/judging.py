"""What the operator of the detectors asks of whatever judges: the models of metrics, or those of logs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from engine.state.segments import ShardState
from engine.vectorized.two_sided import stacked
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.settings import DetectorSettings
from pipelines.jobs.detect.control_messages import ControlMessages, LabelDue
from pipelines.jobs.detect.worst import last_revisions

Action = tuple[int, Callable[[], None]]
"""An instant of event time, epoch milliseconds, and what is to be done when the windows up to it have been judged."""

_Stop = tuple[int, int, Callable[[], None] | None]
"""(event time, order among actions at that time, action)"""


@dataclass(frozen=True)
class Work:
    """What one micro-batch brings to a shard.

    Attributes:
        ready: Windows that end in (before, now], as the models judge them.
        late: Windows that end at ``before`` or earlier and can be judged again.
        rules: The rules that are new, each with the instant from which on it is in force.
        labels: The labels that are new.
        before: The watermark before the micro-batch, epoch milliseconds.
        now: The watermark after it.
    """

    ready: pl.DataFrame
    late: pl.DataFrame
    rules: list[tuple[int, Rule]]
    labels: list[LabelDue]
    before: int
    now: int


class ShardJudging(ABC):
    """One shard, opened for one micro-batch: what is believed there, and the state it is kept in."""

    @property
    @abstractmethod
    def base(self) -> int:
        """Windows that end at this instant or earlier are not judged any more, epoch milliseconds."""

    @abstractmethod
    def process(self, work: Work) -> pl.DataFrame:
        """Judges; keeps what is believed; returns the verdicts to be reported, without columns if there are none."""

    @property
    @abstractmethod
    def keys(self) -> int | None:
        """How many series or machines are known; ``None`` before the first window."""


class Judge(ABC):
    """Judges the windows of shards; holds no state."""

    @abstractmethod
    def windows(self, features: pl.DataFrame) -> pl.DataFrame:
        """Records of the input as the windows that the models judge."""

    @abstractmethod
    def open(self, state: ShardState, control: ControlMessages, before: int) -> ShardJudging:
        """Opens a shard for a micro-batch.

        Args:
            state: The shard's state.
            control: The rules and labels that the shard knows.
            before: The watermark before the micro-batch.
        """


class Judges(ABC):
    """What a detector judges with; a configuration."""

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
    """Judges windows in order of event time; between them labels take effect and actions are done.

    Args:
        frame: The windows.
        after: They end after this instant.
        until: They end at this instant or earlier.
        judge: Judges windows that end at an instant, its second argument, or earlier.
        labels: Those that take effect until ``until``.
        apply_label: Changes what is believed.
        actions: Done after the labels of their instant.

    Returns:
        The last revision of each verdict, with column ``announced``: end of the window with which it was announced.
        Without columns if there are none.
    """
    verdicts, done, ends = [], after, pl.col("window_end")
    stops: list[_Stop] = [(due.takes_effect, 0, partial(apply_label, due.label)) for due in labels]
    stops += [(time, 1, action) for time, action in actions]
    for stop, _, action in [*sorted(stops, key=lambda s: s[:2]), (until, 2, None)]:
        some = frame.filter((ends > done) & (ends <= stop)) if frame.height else frame
        found = judge(some, stop)
        if found.height:
            verdicts.append(found.with_columns(announced=pl.when(ends <= done).then(stop).otherwise(ends)))
        done = stop
        if action:
            action()
    return last_revisions(stacked(*verdicts))
