"""What runs in a shard: a processor takes in a batch and gives results, late records and what it holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from engine.spec.operator import Progress
from engine.state.segments import ShardState


@dataclass(frozen=True)
class StateCounts:
    """What a processor holds in its state; ``None`` where it does not tell.

    Attributes:
        keys: Keys; of windows made of slices, the most in one slice.
        open: Windows, of any key, that have not ended.
        timers: Timers that have not fired.
    """

    keys: int | None = None
    open: int | None = None
    timers: int | None = None

    @classmethod
    def combined(cls, parts: Sequence[StateCounts]) -> StateCounts:
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
    held: StateCounts = StateCounts()


class Processor(ABC):
    """Keyed, stateful logic of one shard, vectorised over the shard's keys."""

    @abstractmethod
    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Takes in a batch (any order, maybe empty) and returns what is final at the watermark."""
