"""A sine wave sent at different speeds: windows of one period sum to zero in event time, but not in arrival time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from engine.aggregates import Count, Sum
from engine.examples.kit import T0, Came, Play, Row, Runner, here, job, record, source
from engine.stream import Stream
from engine.windows import Tumbling

PERIOD, STEP = 10_000, 100
Reading = record("Reading", "sensor", time=int, value=float)
Total = record("Total", "sensor", window_start=int, window_end=int, count=int, total=float)


@dataclass(frozen=True)
class Waves:
    """The sums of both kinds of windows, and the samples (arrival, event time, value)."""

    came: list[Came]
    event_time: list[Row]
    processing_time: list[Row]


def compute(run: Runner = here) -> Waves:
    """Six periods; the network delivers them at a third, three times and their own speed in turn."""
    came, clock = [], float(T0)
    for number, time in enumerate(range(T0, T0 + 6 * PERIOD, STEP)):
        clock += STEP * (3, 1 / 3, 1)[number * STEP // (2 * PERIOD)]
        value = float(np.sin(2 * np.pi * (time - T0) / PERIOD))
        came.append((max(round(clock), time), "waves", {"time": time, "sensor": "s", "value": value}))
    waves = Stream.read(source("waves", Reading)).key_by("sensor")
    totals = {"count": Count(), "total": Sum("value")}
    periods = Tumbling(f"{PERIOD}ms")
    by_event_time = waves.window(periods).aggregate(**totals)
    by_arrival = waves.timed("processing").window(periods).aggregate(**totals)
    results = run(
        {
            "event": Play(job(by_event_time, Total, "event"), came),
            "arrival": Play(job(by_arrival, Total, "arrival"), came),
        }
    )
    return Waves(came, results["event"], results["arrival"])


def plot(waves: Waves, figure: Figure) -> None:
    """The wave as it came, and the sums."""
    above, below = figure.subplots(2, 1)
    above.plot([(at - T0) / 1000 for at, _, _ in waves.came], [r["value"] for _, _, r in waves.came], ".", ms=2)
    above.set(title="a sine wave as it arrives", xlabel="arrival, s", ylabel="value")
    for name, rows, color in (
        ("event time", waves.event_time, "C2"),
        ("processing time", waves.processing_time, "C3"),
    ):
        below.plot([row["total"] for row in rows], "o-", color=color, label=f"windows in {name}")
    below.set(title="sum of one period's length", xlabel="window", ylabel="sum")
    below.legend()
