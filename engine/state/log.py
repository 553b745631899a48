"""A log in the state of a shard: what a batch adds is a part of its own, and parts written before are left alone.

So the cost of a batch follows its records, not what is held already. Whoever has a log reads the parts that it needs,
chosen by their marks, and from time to time makes one part of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.state.segments import ShardState, Tables, pack, unpack


class Part(NamedTuple):
    """One part of a log.

    Attributes:
        number: Names it; a part that was added later has a greater one.
        mark: By which its owner chooses parts: the slice it is of, say, or the instant at which it is needed.
        rows: How much is in it, as its owner counts.
    """

    number: int
    mark: int
    rows: int


class PartLog:
    """Parts of a shard's state, each some named tables.

    State: segment ``<name>/<number>``, a part; the note ``<name>/``, number and rows of each part by its mark.

    Args:
        state: The shard's.
        name: Of the log; no other segments begin with it.

    >>> import polars as pl
    >>> from engine.state.segments import DictSegments
    >>> log = PartLog(ShardState(DictSegments()), "log")
    >>> log.append({"records": pl.DataFrame({"x": [1, 2]})}, mark=7, rows=2)
    >>> log.append({"records": pl.DataFrame({"x": [3]})}, mark=9, rows=1)
    >>> [log.read(part)["records"]["x"].to_list() for part in log.parts if part.mark > 7]
    [[3]]
    """

    def __init__(self, state: ShardState, name: str) -> None:
        self.state, self.name = state, name
        self._noted: dict[str, list[list[int]]] = state.notes.setdefault(f"{name}/", {})
        self._next = 1 + max((number for parts in self._noted.values() for number, _ in parts), default=-1)

    @property
    def parts(self) -> list[Part]:
        """All parts in the order in which they were added; one that replaced others stands where the first was."""
        return sorted(part for mark in self.marks for part in self.of(mark))

    @property
    def marks(self) -> list[int]:
        """The marks that parts have, each once."""
        return [int(mark) for mark in self._noted]

    @property
    def most_rows(self) -> int:
        """Rows of the part with the most; 0 without any."""
        return max((rows for parts in self._noted.values() for _, rows in parts), default=0)

    def count(self, mark: int) -> int:
        """How many parts have a mark."""
        return len(self._noted.get(str(mark), ()))

    def of(self, mark: int) -> list[Part]:
        """The parts that have a mark."""
        return [Part(number, mark, rows) for number, rows in self._noted.get(str(mark), ())]

    def append(self, tables: Tables, mark: int = 0, rows: int = 0) -> None:
        """Adds a part; reads none."""
        self._next += 1
        self._put(self._next - 1, tables, mark, rows)

    def read(self, part: Part) -> Tables:
        """The tables of a part."""
        value = self.state.get(self._segment(part.number))
        assert value is not None, f"{part} of {self.name} is noted and not there"
        return unpack(value)

    def replace(self, parts: Sequence[Part], tables: Tables, mark: int = 0, rows: int = 0) -> None:
        """Puts one part in the place of some others; without others it is added."""
        if not parts:
            self.append(tables, mark, rows)
            return
        first, *others = parts
        self.forget(others)
        self._unnote(first)
        self._put(first.number, tables, mark, rows)

    def forget(self, parts: Iterable[Part]) -> None:
        """Removes some parts."""
        for part in parts:
            self._unnote(part)
            self.state.remove(self._segment(part.number))

    def fewest_neighbours(self) -> list[Part]:
        """The two parts next to each other that have the fewest rows together: those that cost least to make one of."""
        parts = self.parts
        at = min(range(1, len(parts)), key=lambda i: parts[i - 1].rows + parts[i].rows)
        return parts[at - 1 : at + 1]

    def _put(self, number: int, tables: Tables, mark: int, rows: int) -> None:
        self.state.put(self._segment(number), pack(tables))
        self._noted.setdefault(str(mark), []).append([number, rows])

    def _unnote(self, part: Part) -> None:
        rest = [noted for noted in self._noted.pop(str(part.mark)) if noted[0] != part.number]
        if rest:
            self._noted[str(part.mark)] = rest

    def _segment(self, number: int) -> str:
        return f"{self.name}/{number}"
