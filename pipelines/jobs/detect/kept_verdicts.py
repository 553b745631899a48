"""Verdicts of a shard that are kept for a while, so that those of a few machines are read without the others'.

A shard with few series keeps all of a micro-batch in one part. On a large site that would make each incident cost as
much as the site: there the verdicts are divided by machine, and an incident reads its own machines' parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from engine.columns.partitioning import slots
from engine.state.part_log import PartLog
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.two_sided import stacked
from pipelines.jobs.detect.intervals import SERIES

_MOST_PARTS = 64
_LOG, _DIVIDED = "ordinary", "ordinary.divided"
_BUCKETS = 127
"""Into how many logs machines are divided; no multiple of a number of shards, which are chosen by the same hash."""


class KeptVerdicts:
    """The verdicts that one shard keeps.

    State:

    - log ``ordinary``: the verdicts of all machines, until there are many series;
    - logs ``ordinary.<n>`` thereafter: those of the machines with slot ``n``;
    - note ``ordinary.divided``: whether there are many series.

    The mark of a part is the newest window end in it. The verdicts of a machine are in one of these logs, in the order
    in which they were added.

    Args:
        state: The state of the shard.
        many: From so many series in a micro-batch on, verdicts are divided.
    """

    def __init__(self, state: ShardState, many: int = 0) -> None:
        self.state, self.many = state, many

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """Divides the verdicts among other shards by machine."""
        for name in sorted({name for state in states.before for name in KeptVerdicts(state)._names()}):
            states.log(name)
        states.note(_DIVIDED, max)

    def add(self, verdicts: pl.DataFrame) -> None:
        """Keeps some verdicts, each of which replaces earlier ones on its window."""
        if not verdicts.height:
            return
        if self._is_divided(verdicts):
            self._divide_what_is_whole()
            self._divide(verdicts)
        else:
            self._append(_LOG, verdicts)

    def since(self, instant: int, series: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The parts that may hold verdicts on windows that end after an instant, of some series; in their order.

        Args:
            instant: Epoch milliseconds.
            series: Columns of `SERIES`. Parts may hold verdicts of other series too.
        """
        mine = {_LOG} | {f"{_LOG}.{slot}" for slot in set(slots(series["entity"], _BUCKETS).tolist())}
        for log in self._logs():
            if log.name in mine:
                yield from (log.read(part)["verdicts"] for part in log.parts if part.mark > instant)

    def forget(self, until: int) -> None:
        """Removes parts in which no window ends after an instant (epoch milliseconds)."""
        for log in self._logs():
            log.forget([part for part in log.parts if part.mark <= until])

    def drop(self) -> None:
        """Removes everything."""
        for log in self._logs():
            self._remove(log)
        self.state.notes.pop(_DIVIDED, None)

    def _is_divided(self, verdicts: pl.DataFrame) -> bool:
        if _DIVIDED not in self.state.notes and verdicts.height >= self.many:
            series = verdicts.select(pl.struct(SERIES).n_unique()).item()
            if series >= self.many:
                self.state.notes[_DIVIDED] = True
        return _DIVIDED in self.state.notes

    def _divide_what_is_whole(self) -> None:
        for log in self._logs():
            if log.name == _LOG:
                for part in log.parts:
                    self._divide(log.read(part)["verdicts"])
                self._remove(log)

    def _divide(self, verdicts: pl.DataFrame) -> None:
        slot = pl.Series("_slot", slots(verdicts["entity"], _BUCKETS))
        for (number,), some in verdicts.group_by(slot, maintain_order=True):
            self._append(f"{_LOG}.{number}", some)

    def _append(self, name: str, verdicts: pl.DataFrame) -> None:
        log, mark = PartLog(self.state, name), int(verdicts["window_end"].to_numpy().max())
        log.append({"verdicts": verdicts}, mark, verdicts.height)
        while len(log.parts) > _MOST_PARTS:
            both = log.fewest_neighbours()
            merged = stacked(*(log.read(part)["verdicts"] for part in both))
            log.replace(both, {"verdicts": merged}, max(part.mark for part in both), merged.height)

    def _remove(self, log: PartLog) -> None:
        log.forget(log.parts)
        del self.state.notes[f"{log.name}/"]

    def _names(self) -> list[str]:
        return [name[:-1] for name in self.state.notes if name.startswith(_LOG) and name.endswith("/")]

    def _logs(self) -> list[PartLog]:
        return [PartLog(self.state, name) for name in self._names()]
