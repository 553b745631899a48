"""Keyed, stateful logic: what a job declares, the vectorised logic built from it, and its specification."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from engine.state.segments import ShardState

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Progress:
    """How far a shard has come in event time and in processing time, before and after the batch at hand.

    Attributes:
        before: The watermark before the batch, epoch milliseconds.
        now: The watermark after it.
        clock_before: Processing time before the batch: the greatest arrival time seen, epoch milliseconds.
        clock: Processing time with the batch; heartbeats move it too.
    """

    before: int
    now: int
    clock_before: int = NEVER
    clock: int = NEVER


@dataclass(frozen=True)
class Held:
    """What a processor holds in its state; ``None`` where it does not tell.

    Attributes:
        keys: Keys; of windows made of panes, the most in one pane.
        open: Windows, of any key, that have not ended.
        timers: Timers that have not fired.
    """

    keys: int | None = None
    open: int | None = None
    timers: int | None = None

    @classmethod
    def together(cls, parts: Sequence[Held]) -> Held:
        """What operators one after the other hold: the most keys of one of them, all windows, all timers."""

        def known(name: str) -> list[int]:
            return [value for part in parts if (value := getattr(part, name)) is not None]

        keys, opened, timers = known("keys"), known("open"), known("timers")
        return cls(max(keys, default=None), sum(opened) if opened else None, sum(timers) if timers else None)


@dataclass(frozen=True)
class Results:
    """What a processor returns for a batch: new records, input that came too late to count, and what it holds."""

    records: pl.DataFrame
    late: pl.DataFrame | None = None
    held: Held = Held()


class Processor(ABC):
    """Keyed, stateful logic of one shard, vectorised over the shard's keys."""

    @abstractmethod
    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Takes in a batch (any order, maybe empty) and returns what is final at the watermark."""


class Reference(ABC):
    """The specification of a processor: plain Python over all keys, slow and obvious."""

    @abstractmethod
    def take(self, records: list[Row], progress: Progress) -> tuple[list[Row], list[Row]]:
        """Takes in one micro-batch in order of arrival; returns results, and records that came too late to count."""


class ProcessorConfig(ABC):
    """What a job declares; the logic is built from it in the worker."""

    @abstractmethod
    def build(self) -> Processor:
        """The logic."""

    def reference(self) -> Reference:
        """The specification of the logic.

        Raises:
            NewnormalError: ``PROCESSOR_UNKNOWN`` if there is none.
        """
        name = type(self).__name__
        raise NewnormalError("PROCESSOR_UNKNOWN", f"{name} has no reference", accepted="a class with reference()")

    def bound(self, key: tuple[str, ...], time: str, loops: tuple[int, ...] = ()) -> ProcessorConfig:
        """The same on a stream with this key and event-time column; ``loops``: its inputs that hold no watermark."""
        return self

    def result_time(self, time: str) -> str:
        """The event-time column of the results; ``time`` is that of the input."""
        return time

    def late_forms(self, given: Sequence[pa.Schema]) -> Sequence[pa.Schema]:
        """The columns of records that may come too late: none where it does not tell.

        Args:
            given: The columns of each input.
        """
        return ()

    def describe(self) -> list[tuple[str, str]]:
        """What it does and keeps, in its user's terms: lines of `Job.explain`."""
        from engine.explain.plan import in_words

        return in_words(self)
