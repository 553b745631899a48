"""Combines several streams into one sequence of micro-batches, in which they are killed and restarted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.testing.scripted_stream import Batch, Sentinel, TestStream


@dataclass
class ScheduledBatch:
    """One micro-batch of the query.

    Attributes:
        parts: The batches of the streams that have one, by number of the stream.
        then: The crashes at its end.
    """

    parts: dict[int, Batch] = field(default_factory=dict)
    then: set[Sentinel] = field(default_factory=set)


def schedule(streams: Sequence[TestStream]) -> list[ScheduledBatch]:
    """Combines streams: each keeps its order, and the n-th crashes of all streams are in one step.

    >>> from engine.testing.scripted_stream import ABORT
    >>> a = TestStream().add({"x": 1}, ABORT, {"x": 2})
    >>> b = TestStream().add({"x": 1}).add({"x": 2}).add({"x": 3}, ABORT)
    >>> [(sorted(step.parts), *(s.value for s in step.then)) for step in schedule([a, b])]
    [([1],), ([1],), ([0, 1],), ([0, 1], 'abort'), ([0],)]
    """
    pieces = [_cut(stream.batches) for stream in streams]
    steps: list[ScheduledBatch] = []
    for nth in range(max(map(len, pieces), default=0)):
        parts = {number: piece[nth] for number, piece in enumerate(pieces) if nth < len(piece)}
        length = max(map(len, parts.values()))
        these = [ScheduledBatch() for _ in range(length)]
        for number, batches in parts.items():
            for step, batch in zip(these[length - len(batches) :], batches, strict=True):
                step.parts[number] = batch
        these[-1].then = {batch.then for batch in these[-1].parts.values() if batch.then}
        steps += these
    return steps


def _cut(batches: Sequence[Batch]) -> list[list[Batch]]:
    """Splits batches into pieces, each of which but the last ends in a crash."""
    pieces: list[list[Batch]] = [[]]
    for batch in batches:
        pieces[-1].append(batch)
        if batch.then:
            pieces.append([])
    return [piece for piece in pieces if piece]
