"""Reports a chaos run: each fault as a line of JSON, a summary by kind of fault, and a plot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Disturbance:
    """A fault that was done.

    Attributes:
        number: Its number, from 1.
        at: When it began, ISO 8601 in UTC.
        since: The same, in seconds since the first result.
        fault: The kind of fault.
        pids: The processes that were hit.
        lasted: Seconds until its cause was over.
        recovery: Seconds from then to the first new result; ``None`` if none came in time, or before the next fault.
        waited: True if the next fault waited for the recovery.
        operation: True if it is no fault, but something that an operator does meanwhile.
        restarts: How often the pipeline or a server had to be started again meanwhile.
    """

    number: int
    at: str
    since: float
    fault: str
    pids: tuple[int, ...]
    lasted: float
    recovery: float | None
    waited: bool
    restarts: int
    operation: bool = False

    @property
    def stalled(self) -> bool:
        """True if no new result came although it was waited for."""
        return self.waited and self.recovery is None


def append(path: Path, disturbance: Disturbance) -> None:
    """Appends a fault to the log."""
    with path.open("a", encoding="utf-8") as log:
        log.write(json.dumps(asdict(disturbance)) + "\n")


def by_kind(disturbances: Sequence[Disturbance]) -> list[dict[str, Any]]:
    """For each kind of fault: how many there were, and the median and worst recovery in seconds."""
    rows = []
    for kind in sorted({each.fault for each in disturbances}):
        own = [each for each in disturbances if each.fault == kind]
        times = [each.recovery for each in own if each.recovery is not None]
        middle, worst = (round(median(times), 1), round(max(times), 1)) if times else (None, None)
        rows.append({"fault": kind, "count": len(own), "median_s": middle, "worst_s": worst})
    return rows


def plot(disturbances: Sequence[Disturbance], course: Sequence[tuple[float, int]], out: Path) -> None:
    """Plots the documents over time with the faults, and the recovery from each.

    Args:
        disturbances: The faults.
        course: Seconds since the first result, and the number of documents then.
        out: File of the picture.
    """
    figure = Figure(figsize=(14, 9), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[1, 1.4])
    above.plot([at for at, _ in course], [count for _, count in course], color="black", linewidth=0.9)
    above.set_xlabel("seconds since the first result")
    above.set_ylabel("documents in Elasticsearch")
    kinds = sorted({each.fault for each in disturbances}, reverse=True)
    for each in disturbances:
        end = each.since + each.lasted
        above.axvspan(each.since, max(end, each.since + 0.5), color="tab:red", alpha=0.4)
        if each.recovery is not None:
            above.axvspan(end, end + each.recovery, color="tab:orange", alpha=0.15)
            below.plot(each.recovery, kinds.index(each.fault), "o", color="tab:orange")
        elif each.stalled:
            below.plot(0, kinds.index(each.fault), "x", color="tab:red")
    below.set_yticks(range(len(kinds)), kinds)
    below.set_xlim(left=0)
    below.grid(axis="x", alpha=0.3)
    below.set_xlabel("seconds from the end of the fault to the first new result")
    figure.savefig(out, dpi=90)
