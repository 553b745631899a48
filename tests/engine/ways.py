"""The ways in which the engine computes windows: tests that hold for windows of any kind go through all of them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.aggregates import AnyAggregate
from engine.operators import CountWindows
from engine.stream import Stream
from engine.triggers import AfterAny, AfterWatermark, Never
from engine.windows import Session, Sliding, Tumbling, Window

WAYS: dict[str, Window | CountWindows] = {
    "slices": Tumbling("10s"),
    "several slices": Sliding("10s", every="2s"),
    "a trigger": Tumbling("10s"),
    "sessions": Session("1h"),
    "counts": CountWindows(1000, timeout="10s"),
}
"""A window of each way. "A trigger": fires as windows without a trigger do, but its windows share no slices."""


def windowed(stream: Stream, way: str, aggregates: Mapping[str, AnyAggregate], lateness: str = "0s") -> Stream:
    """The aggregates of a stream in the windows of one way; those of counts have no lateness."""
    stream = stream.window(WAYS[way], "0s" if way == "counts" else lateness)
    stream = stream.trigger(AfterAny(AfterWatermark(), Never())) if way == "a trigger" else stream
    return stream.aggregate(**supported(way, aggregates))


def supported(way: str, aggregates: Mapping[str, AnyAggregate]) -> dict[str, AnyAggregate]:
    """The aggregates that windows of a way know: a rate is known of aligned windows at the watermark only."""
    return {name: aggregate for name, aggregate in aggregates.items() if "slices" in way or name != "rate"}
