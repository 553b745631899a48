"""Verdicts of a shard that are kept for a while, so that those of a few machines are read without the others'.

What comes is added as one part. When these parts hold many verdicts, as on a large site, they are divided by machine,
as in a log-structured merge tree: an incident then reads the parts of its own machines, and those not divided yet.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from engine.columns.partitioning import slots
from engine.columns.tables import stacked
from engine.state.part_log import PartLog
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState

_MOST_PARTS = 64
_LOG = "ordinary"
_BUCKETS = 127
"""Into how many logs machines are divided; no multiple of a number of shards, which are chosen by the same hash."""


class KeptVerdicts:
    """The verdicts that one shard keeps.

    State:

    - log ``ordinary``: the newest verdicts, of all machines;
    - logs ``ordinary.<n>``: earlier ones, of the machines with slot ``n``.

    The mark of a part is the newest window end in it.

    Args:
        state: The state of the shard.
        many: Verdicts of all machines together are divided when there are so many.
    """

    def __init__(self, state: ShardState, many: int = 0) -> None:
        self.state, self.many = state, many

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """Divides the verdicts among other shards by machine."""
        for name in sorted({name for state in states.before for name in KeptVerdicts(state)._names()}):
            states.log(name, lambda tables: tables["verdicts"].height)

    def add(self, verdicts: pl.DataFrame) -> None:
        """Keeps some verdicts, each of which replaces earlier ones on its window."""
        if not verdicts.height:
            return
        newest = PartLog(self.state, _LOG)
        parts = newest.parts
        if verdicts.height + sum(part.rows for part in parts) < self.many:
            _append(newest, verdicts)
            return
        self._divide(stacked(*(newest.read(part)["verdicts"] for part in parts), verdicts))
        newest.forget(parts)

    def since(self, instant: int, series: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The parts that may hold verdicts on windows that end after an instant, of some series; in their order.

        Args:
            instant: Epoch milliseconds.
            series: Columns of `SERIES`. Parts may hold verdicts of other series too.
        """
        mine = {_LOG} | {f"{_LOG}.{slot}" for slot in set(slots(series["entity"], _BUCKETS).tolist())}
        for log in sorted(self._logs(), key=lambda log: log.name == _LOG):  # the newest of each machine last
            if log.name in mine:
                yield from (log.read(part)["verdicts"] for part in log.parts if part.mark > instant)

    def forget(self, until: int) -> None:
        """Removes parts in which no window ends after an instant (epoch milliseconds)."""
        for log in self._logs():
            log.forget([part for part in log.parts if part.mark <= until])

    def drop(self) -> None:
        """Removes everything."""
        for log in self._logs():
            log.forget(log.parts)
            del self.state.notes[f"{log.name}/"]

    def _divide(self, verdicts: pl.DataFrame) -> None:
        slot = pl.Series("_slot", slots(verdicts["entity"], _BUCKETS))
        for (number,), part in verdicts.group_by(slot, maintain_order=True):
            _append(PartLog(self.state, f"{_LOG}.{number}"), part)

    def _names(self) -> list[str]:
        return [name[:-1] for name in self.state.notes if name.startswith(_LOG) and name.endswith("/")]

    def _logs(self) -> list[PartLog]:
        return [PartLog(self.state, name) for name in self._names()]


def _append(log: PartLog, verdicts: pl.DataFrame) -> None:
    log.append({"verdicts": verdicts}, int(verdicts["window_end"].to_numpy().max()), verdicts.height)
    while len(log.parts) > _MOST_PARTS:
        both = log.fewest_neighbours()
        merged = stacked(*(log.read(part)["verdicts"] for part in both))
        log.replace(both, {"verdicts": merged}, max(part.mark for part in both), merged.height)
