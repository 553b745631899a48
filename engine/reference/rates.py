"""The meaning of a `Rate`, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable

from engine.aggregates import Rate
from engine.spec.operator import Row


def samples(rate: Rate, records: Iterable[Row]) -> list[Row]:
    """The records that are samples of a counter, by time and, at one time, by value."""
    counters = (r for r in records if rate.only is None or r[rate.only[0]] == rate.only[1])
    with_value = (r for r in counters if r[rate.column] is not None)
    return sorted(with_value, key=lambda r: (r[rate.time], r[rate.column]))


def predecessor(rate: Rate, ahead: Iterable[Row], inside: Iterable[Row]) -> Row | None:
    """The last sample before a window, if the first sample of the window is at most the lookback later."""
    earlier, own = samples(rate, ahead), samples(rate, inside)
    near = own and earlier and own[0][rate.time] - earlier[-1][rate.time] <= rate.lookback_ms
    return earlier[-1] if near else None


def increased(rate: Rate, before: Row | None, inside: Iterable[Row]) -> float | None:
    """Increase per second over the samples of a window and the one before it; ``None`` if none is known.

    A value below the one before it is a reset: the counter began anew in between, nobody knows when, so that neither
    the increase nor the time since the sample before counts.
    """
    increase, elapsed, previous = 0.0, 0, before
    for sample in samples(rate, inside):
        if previous is not None and sample[rate.time] - previous[rate.time] <= rate.lookback_ms:
            value, was = float(sample[rate.column]), float(previous[rate.column])
            if value >= was:
                increase += value - was
                elapsed += sample[rate.time] - previous[rate.time]
        previous = sample
    return increase * 1000 / elapsed if elapsed else None
