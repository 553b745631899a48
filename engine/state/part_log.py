"""A log in the state of a shard: each micro-batch adds a part of its own and leaves earlier parts as they are.

So the cost of a micro-batch follows its records, not what is stored already. The owner of a log reads the parts that it
needs, chosen by their marks, and merges parts from time to time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.state.segments import ShardState, Tables, pack, unpack


class Part(NamedTuple):
    """One part of a log.

    Attributes:
        number: Number of the part; a part that was added later has a greater number.
        mark: Integer by which the owner chooses parts, for example the start of a slice or the time when it is needed.
        rows: Size of the part, as its owner counts it.
    """

    number: int
    mark: int
    rows: int


class PartLog:
    """A log in a shard's state; each part has some named tables.

    State: segment ``<name>/<number>`` holds a part. The note ``<name>/`` has number and rows of each part, by its mark.

    Args:
        state: The state of the shard.
        name: Name of the log; no other segments may begin with it.

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
        """All parts in the order in which they were added; a part that replaced others has the place of the first."""
        return sorted(part for mark in self.marks for part in self.of(mark))

    @property
    def marks(self) -> list[int]:
        """The distinct marks of all parts."""
        return [int(mark) for mark in self._noted]

    @property
    def most_rows(self) -> int:
        """The number of rows of the largest part; 0 if there are no parts."""
        return max((rows for parts in self._noted.values() for _, rows in parts), default=0)

    def count(self, mark: int) -> int:
        """The number of parts with a mark."""
        return len(self._noted.get(str(mark), ()))

    def of(self, mark: int) -> list[Part]:
        """The parts with a mark."""
        return [Part(number, mark, rows) for number, rows in self._noted.get(str(mark), ())]

    def append(self, tables: Tables, mark: int = 0, rows: int = 0) -> None:
        """Adds a part without reading others."""
        self._next += 1
        self._put(self._next - 1, tables, mark, rows)

    def read(self, part: Part) -> Tables:
        """The tables of a part."""
        value = self.state.get(self._segment(part.number))
        assert value is not None, f"{part} of {self.name} is noted and not there"
        return unpack(value)

    def replace(self, parts: Sequence[Part], tables: Tables, mark: int = 0, rows: int = 0) -> None:
        """Replaces some parts by one; without parts to replace, it is added."""
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
        """The two neighbouring parts with the fewest rows together, which are the cheapest to merge."""
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
