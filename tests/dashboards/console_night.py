"""A night as an operator meets it: a surge that goes on, a machine that fell silent, and what was before."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from pipelines.contracts.records import Incident, Novelty
from pipelines.contracts.records.incident import AffectedSeries, LogChange
from pipelines.contracts.records.novelty import JOINED
from tests.dashboards.console_documents import END, WINDOW, incident

MINUTE = 60_000
SURGE, OUTAGE, RELEASE = END - 4 * MINUTE, END - 13 * MINUTE, END - 70 * MINUTE
"""When the surge of vm-00003, the outage of vm-00015 and the release on vm-00004 began."""
SILENT_MS = 90_000
HOURS_BEFORE = END - 100 * MINUTE

RATIO, RATE = ("cpu.util", "ratio"), ("http.requests", "counter")
_UNUSUAL: dict[tuple[str, str], tuple[str, float, float, int, int | None]] = {
    # machine, metric: kind of the metric, usual value, unusual value, onset, end
    ("vm-00003", "http.requests"): ("counter", 410.0, 1560.0, SURGE, None),
    ("vm-00003", "cpu.util"): ("ratio", 0.27, 0.71, SURGE, None),
    ("vm-00003", "net.bytes_sent"): ("counter", 4.9e5, 1.86e6, SURGE, None),
    ("vm-00003", "http.latency"): ("latency", 38.0, 92.0, SURGE + 2 * WINDOW, None),
    ("host-001", "cpu.util"): ("ratio", 0.45, 0.70, SURGE, None),
    ("host-001", "load.1m"): ("gauge", 15.0, 29.0, SURGE + 3 * WINDOW, None),
    ("host-007", "cpu.util"): ("ratio", 0.52, 0.40, OUTAGE + WINDOW, OUTAGE + SILENT_MS + WINDOW),
    ("host-007", "load.1m"): ("gauge", 17.0, 11.0, OUTAGE + 2 * WINDOW, OUTAGE + SILENT_MS + 2 * WINDOW),
    ("vm-00004", "http.latency"): ("latency", 41.0, 63.0, RELEASE, RELEASE + 6 * MINUTE),
    ("vm-00004", "mem.used"): ("gauge", 6.1e9, 7.9e9, RELEASE, RELEASE + 6 * MINUTE),
}


def _windows(entity: str, metric: str) -> Iterator[Novelty]:
    kind, level, other, onset, end = _UNUSUAL[entity, metric]
    noise = random.Random(f"{entity} {metric}")
    for at in range(HOURS_BEFORE, END + 1, WINDOW):
        typical = level * (1 + 0.03 * math.sin(at / 3e5))
        novel = onset < at and (end is None or at <= end)
        value = (other if novel else typical) * (1 + noise.gauss(0, 0.02))
        yield Novelty(
            entity=entity,
            metric=metric,
            metric_kind=kind,
            window_start=at - WINDOW,
            window_end=at,
            kind="anomaly" if novel else "recovered" if end and at == end + WINDOW else "normal",
            record_score=min(99.0, 62 + 20 * abs(math.log(value / typical))) if novel else noise.uniform(0, 15),
            probability=1e-5 if novel else 0.5,
            actual=value,
            typical=typical,
            lower=typical * 0.93,
            upper=typical * 1.07,
            since=onset if novel else None,
        )  # type: ignore[call-arg]


def _silence() -> Iterator[Novelty]:
    for at in range(OUTAGE + WINDOW, OUTAGE + SILENT_MS + 1, WINDOW):
        yield Novelty(
            entity="vm-00015",
            metric=JOINED,
            window_start=at - WINDOW,
            window_end=at,
            kind="absence",
            record_score=55.0,
            probability=1e-4,
            since=OUTAGE,
        )  # type: ignore[call-arg]


NOVELTIES: list[Novelty] = [each for key in _UNUSUAL for each in _windows(*key)] + list(_silence())


def _series(entity: str, metric: str, score: int, change: str) -> AffectedSeries:
    kind, level, other, onset, end = _UNUSUAL[entity, metric]
    return AffectedSeries(
        entity=entity,
        metric=metric,
        metric_kind=kind,
        kind="anomaly",
        since=onset,
        reported=onset + WINDOW,
        end=end,
        record_score=score,
        actual=other,
        typical=level,
        lower=level * 0.93,
        upper=level * 1.07,
        change=change,
    )


def _of(
    identity: str, status: Any, score: int, machines: list[str], series: list[AffectedSeries], **more: Any
) -> Incident:
    listed = sorted({each.metric for each in series})
    metrics = [{"metric": name, "machines": 1, "record_score": 70} for name in listed]
    return incident(identity, status, score, machines, series=series, series_count=len(series), metrics=metrics, **more)


SURGED = _of(
    "surge",
    "open",
    71,
    ["vm-00003", "host-001"],
    [
        _series("vm-00003", "http.requests", 88, "3.8 × the usual"),
        _series("vm-00003", "net.bytes_sent", 87, "3.8 × the usual"),
        _series("vm-00003", "cpu.util", 81, "27 → 71 %"),
        _series("vm-00003", "http.latency", 79, "2.4 × the usual"),
        _series("host-001", "load.1m", 75, "1.9 × the usual"),
        _series("host-001", "cpu.util", 71, "45 → 70 %"),
    ],
    start=SURGE,
    opened=SURGE + WINDOW,
    open_series=6,
    message="vm-00003: http.requests 3.8 × the usual, cpu.util 27 → 71 %; host-001, on which it runs, shows it",
    log_changes=[
        LogChange(
            template="queue length <*>",
            example="queue length 412, limit 400",
            entity="vm-00003",
            since=SURGE,
            machines=1,
        )
    ],
)
SILENCED = _of(
    "silence",
    "open",
    58,
    ["vm-00015", "host-007"],
    [
        AffectedSeries(
            entity="vm-00015",
            metric=JOINED,
            kind="absence",
            since=OUTAGE,
            reported=OUTAGE + WINDOW,
            end=OUTAGE + SILENT_MS,
            record_score=55,
            change="sent nothing for 90 s",
        ),
        _series("host-007", "load.1m", 64, "17 → 11"),
        _series("host-007", "cpu.util", 60, "52 → 40 %"),
    ],
    start=OUTAGE,
    opened=OUTAGE + WINDOW,
    open_series=0,
    updated=OUTAGE + SILENT_MS + 2 * WINDOW,
    message="vm-00015 sent nothing for 90 s; host-007, on which it runs, shows it",
)
RELEASED = _of(
    "release",
    "resolved",
    44,
    ["vm-00004"],
    [_series("vm-00004", "http.latency", 70, "1.5 × the usual"), _series("vm-00004", "mem.used", 66, "6.1 → 7.9 GB")],
    start=RELEASE,
    opened=RELEASE + WINDOW,
    open_series=0,
    end=RELEASE + 6 * MINUTE,
    updated=RELEASE + 11 * MINUTE,
    message="vm-00004: http.latency 1.5 × the usual, mem.used 6.1 → 7.9 GB",
    acknowledged_by="ann",
    note="release 2.4",
)
BEFORE = _of(
    "before",
    "resolved",
    66,
    ["vm-00003", "host-001"],
    [],
    start=END - 26 * 60 * MINUTE,
    opened=END - 26 * 60 * MINUTE + WINDOW,
    open_series=0,
    end=END - 26 * 60 * MINUTE + 3 * MINUTE,
    updated=END - 26 * 60 * MINUTE + 8 * MINUTE,
    message="vm-00003: http.requests 3.1 × the usual, cpu.util 26 → 64 %",
    acknowledged_by="ben",
    note="a newsletter went out",
)
INCIDENTS = [SURGED, SILENCED, RELEASED, BEFORE]
