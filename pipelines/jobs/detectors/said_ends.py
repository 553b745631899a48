"""What was said of the ends of machines: that somebody has ended them, or that they are being ended while they live."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import polars as pl

from engine.columns.replicas import END
from engine.spec.duration import END_OF_TIME
from engine.state.rescaling import Rescaling
from engine.state.segments import ShardState
from engine.vectorized.ordered import Waiting
from pipelines.contracts.globs import compiled, is_glob
from pipelines.contracts.records import Change

BEFORE = 3_600_000
"""A machine may go on for so long after it was said to have been ended, milliseconds: it is given time to end."""

_STILL = 300_000
"""What is being ended has sent something since its last window should have come, or so long before, milliseconds: of a
pod on a node that is not reachable it is said later, and that pod was dead before."""

_KEPT, _EVERY, _MOST = 86_400_000, 3_600_000, 5_000
"""How long it is kept that machines were ended, milliseconds; and of each kind, of what was said of so many
milliseconds of event time, how many at most: the first. So it makes no difference when they are read."""

_OF_JOB = re.compile(rf"(?P<whole>[^/]+/[^/]+?(?P<index>-[0-9]{{1,5}})?)-{END}")
"""A pod of a job of Kubernetes, with its index if the job is indexed: a job that is complete has ended its pods."""

_Times = dict[str, list[int]]
_LOG = "ends"
_KINDS = ("ended", "ending")
_ROWS = {"at": pl.Int64, "name": pl.String, "kind": pl.String}


class SaidEnds:
    """The ends of machines that the changes of a site tell.

    State: the log ``ends`` has what was said ahead of the watermark.

    Args:
        kept: As from `kept`, of an earlier micro-batch.
        state: The state of the shard.

    Attributes:
        ended: When machines were ended on purpose, by their globs or the name of their job, epoch milliseconds,
            ascending; that is so whether they lived then or not.
        ending: Likewise when they were told to end, which explains the silence of what lived then.
        new: Whether some came since.
    """

    def __init__(self, kept: dict[str, list[list[Any]]], state: ShardState) -> None:
        self._ahead = Waiting(state, _LOG, near=5_000)
        self.ended, self.ending = (_by_name(kept.get(name, [])) for name in ("ends", "endings"))
        self.new = False

    def __bool__(self) -> bool:
        return bool(self.ended or self.ending)

    def take(self, batch: pl.DataFrame, now: int) -> None:
        """Adds changes whose time the watermark has reached; the others wait until then.

        Args:
            batch: Perhaps with the column ``change``: changes as JSON text, or null.
            now: The watermark, epoch milliseconds.
        """
        texts = batch["change"].drop_nulls().to_list() if "change" in batch.columns else []
        said = [change for text in texts if (change := Change.from_json(text)).kind in _KINDS]
        rows = [(change.time, name, change.kind) for change in said for name in change.machines]
        due = self._ahead.release(pl.DataFrame(rows, _ROWS, orient="row"), pl.col("at"), now)
        for kind in _KINDS:
            if more := due.filter(pl.col("kind") == kind).select("at", "name").rows():
                setattr(self, kind, _by_name(_bounded([*_rows(getattr(self, kind)), *more])))
                self.new = True

    def next(self, after: int) -> int:
        """The first time later than ``after`` at which a machine was ended, epoch milliseconds; `END_OF_TIME`: none."""
        later = ((times, bisect_right(times, after)) for times in self.ended.values())
        return min((times[place] for times, place in later if place < len(times)), default=END_OF_TIME)

    def of(self, entity: str, last: int, due: int, usual: int) -> bool:
        """Whether a machine was ended on purpose, as somebody has said.

        Args:
            entity: The machine.
            last: End of its last window, epoch milliseconds.
            due: When its absence is certain.
            usual: Its usual time between two windows, milliseconds.
        """
        living = min(last + min(max(usual, 0), _STILL), due)
        names = [entity, *_jobs(entity)]
        if any(_within(self.ended.get(name, ()), last - BEFORE, due) for name in names):
            return True
        if _within(self.ending.get(entity, ()), last - BEFORE, living):
            return True
        globs = (name for name, times in self.ended.items() if is_glob(name) and _within(times, last - BEFORE, due))
        return any(compiled((name,)).match(entity) for name in globs)

    def kept(self, base: int) -> dict[str, list[list[Any]]]:
        """What may explain a silence after ``base``, epoch milliseconds; empty lists if nothing may."""
        ends, endings = (
            [[at, name] for at, name in sorted(_rows(own)) if at > base - _KEPT] for own in (self.ended, self.ending)
        )
        return {"ends": ends, "endings": endings}

    @staticmethod
    def rescale(states: Rescaling) -> None:
        """All shards know the same."""
        states.same_log(_LOG)


def _rows(times: _Times) -> Iterator[tuple[int, str]]:
    return ((at, name) for name, own in times.items() for at in own)


def _bounded(rows: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Of the rows of each `_EVERY` of event time the first `_MOST`, each once, in the order of their times."""
    for _, own in groupby(sorted(set(rows)), key=lambda row: row[0] // _EVERY):
        yield from islice(own, _MOST)


def _by_name(rows: Iterable[Sequence[Any]]) -> _Times:
    found: _Times = {}
    for at, name in sorted(rows, key=itemgetter(0)):
        found.setdefault(name, []).append(at)
    return found


def _within(times: list[int] | tuple[()], first: int, last: int) -> bool:
    return bisect_left(times, first) < bisect_right(times, last)


def _jobs(entity: str) -> Iterator[str]:
    """The names that the job of a pod may have.

    >>> list(_jobs("shop/report-29384700-q8d7f")), list(_jobs("shop/sum-3-q8d7f")), list(_jobs("web-1"))
    (['shop/report-29384700'], ['shop/sum-3', 'shop/sum'], [])
    """
    if found := _OF_JOB.fullmatch(entity):
        yield found["whole"]
        if found["index"]:
            yield found["whole"].removesuffix(found["index"])
