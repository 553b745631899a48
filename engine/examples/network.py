"""Network counters in sessions: bytes of each burst of traffic, with early results while it goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from engine.aggregates import Count, Max, Sum
from engine.examples.kit import T0, Came, Play, Row, Runner, here, job, record, source
from engine.stream import Stream
from engine.triggers import AfterProcessingTime, AfterWatermark
from engine.windows import Session

BURSTS = {"web-1": [(0, 20), (60, 90)], "web-2": [(10, 70)], "db-1": [(5, 15), (40, 45), (80, 110)]}
"""The bursts of each machine: start and end in seconds."""
Traffic = record("Traffic", "host", time=int, sent=float)
_COUNTS: dict[str, type] = dict.fromkeys(("window_start", "window_end", "pane", "samples"), int)
Burst = record("Burst", "host", timing=str, sent=float, peak=float, **_COUNTS)


@dataclass(frozen=True)
class Network:
    """The samples in order of arrival, and the panes of the sessions."""

    samples: list[Came]
    panes: list[Row]


def compute(run: Runner = here) -> Network:
    """Three machines; a session ends after 10 s without traffic; early results come every 5 s."""
    rng, samples = np.random.default_rng(8), []
    for host, bursts in BURSTS.items():
        for start, end in bursts:
            for time in range(T0 + start * 1000, T0 + end * 1000, 500):
                row = {"time": time, "host": host, "sent": float(rng.gamma(2, 500))}
                samples.append((time + int(rng.integers(0, 1500)), "traffic", row))
    traffic = Stream.read(source("traffic", Traffic, "2s")).key_by("host").window(Session("10s"))
    sessions = traffic.trigger(AfterWatermark(early=AfterProcessingTime("5s"))).aggregate(
        samples=Count(), sent=Sum("sent"), peak=Max("sent")
    )
    return Network(samples, run({"sessions": Play(job(sessions, Burst, "sessions"), samples, paced=True)})["sessions"])


def plot(network: Network, figure: Figure) -> None:
    """Each session as a bar, with its early results as dots."""
    axes = figure.subplots()
    hosts = sorted(BURSTS)
    for row in network.panes:
        y, start, end = hosts.index(row["host"]), (row["window_start"] - T0) / 1000, (row["window_end"] - T0) / 1000
        if row["timing"] == "early":
            axes.plot(end - 10, y, "o", color="C1", ms=3 + row["sent"] / 20_000)
        else:
            axes.barh(y, end - 10 - start, left=start, height=0.4, color="C0", alpha=0.4)
            axes.text(start, y + 0.25, f"{row['sent'] / 1000:.0f} kB")
    axes.set_yticks(range(len(hosts)), hosts)
    axes.set(title="sessions (bars) and what was known early (dots)", xlabel="event time, s")
