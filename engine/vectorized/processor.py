"""The interface of all logic in a shard: a processor turns a micro-batch into results and late records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from engine.spec.errors import NewnormalError
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState


@dataclass(frozen=True)
class StateCounts:
    """Counts of what a processor has in its state; ``None`` where it does not count.

    Attributes:
        keys: Number of keys; for windows made of slices, the number in the largest slice.
        open: Number of open windows of all keys.
        timers: Number of timers that are set.
    """

    keys: int | None = None
    open: int | None = None
    timers: int | None = None

    @classmethod
    def combined(cls, parts: Sequence[StateCounts]) -> StateCounts:
        """The counts of a chain of operators: the most keys in one of them, and the sums of windows and timers."""

        def counts(name: str) -> list[int]:
            return [value for part in parts if (value := getattr(part, name)) is not None]

        keys, opened, timers = counts("keys"), counts("open"), counts("timers")
        return cls(max(keys, default=None), sum(opened) if opened else None, sum(timers) if timers else None)


@dataclass(frozen=True)
class Refused:
    """Records that an operator has not taken in.

    Attributes:
        records: The records, at least one.
        code: Stable code of the reason.
        reason: What is wrong and what is accepted.
        slot: The slot of their keys.
    """

    records: pl.DataFrame
    code: str
    reason: str
    slot: int


@dataclass(frozen=True)
class Results:
    """The output of a processor for a micro-batch.

    Attributes:
        records: The results.
        late: The records that came too late.
        held: Counts of its state.
        aside: The results of side outputs, by name.
        beyond: Results that their type cannot hold, see `engine.vectorized.beyond`; those of the last operator are
            among ``records``.
        refused: Records that were not taken in.
    """

    records: pl.DataFrame
    late: pl.DataFrame | None = None
    held: StateCounts = StateCounts()
    aside: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    beyond: Sequence[pl.DataFrame] = ()
    refused: Sequence[Refused] = ()


class Processor(ABC):
    """Keyed, stateful logic of one shard, vectorised over the shard's keys."""

    @abstractmethod
    def process(self, batch: pl.DataFrame, state: ShardState, progress: Progress) -> Results:
        """Processes a micro-batch, in any order and maybe empty, and returns what is due at the watermark."""

    def rescale(self, states: Rescaling) -> None:
        """Divides the state of all shards anew among another number of shards; afterwards each key finds its state.

        Raises:
            NewnormalError: ``RESCALE_UNSUPPORTED`` if this logic cannot do that.
        """
        name = type(self).__name__
        accepted = f"{name}.rescale(states), see `engine.state.rescaling`"
        raise NewnormalError("RESCALE_UNSUPPORTED", f"{name} cannot divide its state by key", name, accepted)
