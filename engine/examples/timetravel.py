"""Time travel: a past range of the log, replayed in another order and in other batches, gives the same panes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from engine.aggregates import Count, Max, Mean
from engine.examples.kit import T0, Came, Play, Row, Runner, here, job, record, source
from engine.stream import Stream
from engine.windows import Tumbling

WINDOW, FROM, TO = 10_000, T0 + 120_000, T0 + 240_000
TOPIC = "loads"
Load = record("Load", "host", time=int, value=float)
Pane = record("Pane", "host", window_start=int, window_end=int, count=int, mean=float, max=float, revision=int)


@dataclass(frozen=True)
class Travel:
    """The last revisions of the panes of the first run, and of the replay of a part of it."""

    live: list[Row]
    replayed: list[Row]


def log() -> list[Came]:
    """Six minutes of two machines, up to 8 s out of order."""
    rng = np.random.default_rng(11)
    came = []
    for time in range(T0, T0 + 360_000, 250):
        for host in ("a", "b"):
            value = 50 + 20 * np.sin((time - T0) / 40_000 + (host == "b")) + rng.normal(0, 4)
            came.append((time + int(rng.integers(0, 8000)), TOPIC, {"time": time, "host": host, "value": float(value)}))
    return came


def compute(run: Runner = here) -> Travel:
    """Runs over the whole log as it arrived; then over a past range, read from the log at once."""
    loads = Stream.read(source(TOPIC, Load, "3s")).key_by("host").window(Tumbling(f"{WINDOW}ms"), "1m")
    panes = loads.aggregate(count=Count(), mean=Mean("value"), max=Max("value"))
    came = log()
    past = [(at, topic, row) for at, topic, row in came if FROM <= row["time"] < TO]
    again = Play(job(panes, Pane, "again"), past, every=50_000, shards=1)
    results = run({"then": Play(job(panes, Pane, "then"), came), "again": again})
    return Travel(last(results["then"]), last(results["again"]))


def last(rows: list[Row]) -> list[Row]:
    """The last revision of each pane in the range, in order; which one that is depends on the batches."""
    final = {(row["host"], row["window_start"]): row for row in sorted(rows, key=lambda row: row["revision"])}
    panes = (row for _, row in sorted(final.items()) if FROM <= row["window_start"] < TO)
    return [{name: value for name, value in row.items() if name != "revision"} for row in panes]


def plot(travel: Travel, figure: Figure) -> None:
    """Plots the panes of both runs on top of each other."""
    axes = figure.subplots()
    for host, color in (("a", "C0"), ("b", "C1")):
        for name, rows, style in (("as it came", travel.live, "-"), ("replayed", travel.replayed, "o")):
            mine = [row for row in rows if row["host"] == host]
            times = [(row["window_start"] - T0) / 1000 for row in mine]
            axes.plot(times, [row["mean"] for row in mine], style, color=color, label=f"{host}, {name}", mfc="none")
    axes.set(title="mean load of windows, then and again", xlabel="event time, s", ylabel="load")
    axes.legend()
