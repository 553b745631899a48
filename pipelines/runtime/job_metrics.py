"""Measurements of the jobs: one small JSON file per job in the state directory, for `newnormal explain-job`."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

from engine.files import write_whole
from engine.runtime.shard import Stats
from engine.spark.query import BatchReport

LAST = 50
"""Number of micro-batches, the latest ones, over which figures are computed."""
_HOT = 5
_DOMINANT = 0.01
_EVERY_SECONDS = 1.0
"""Least time between two writes of a job's file."""


class JobMetrics:
    """Collects the reports of micro-batches, and writes the figures of each job to a file.

    Args:
        folder: Folder of the files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, threading.Lock()
        self.reports: dict[str, deque[BatchReport]] = {}
        self.written: dict[str, float] = {}

    def batch(self, report: BatchReport) -> None:
        """Adds the report of a micro-batch."""
        with self.lock:
            self.reports.setdefault(report.job, deque(maxlen=LAST)).append(report)
            if time.monotonic() >= self.written.get(report.job, float("-inf")) + _EVERY_SECONDS:
                self._write(report.job)

    def flush(self) -> None:
        """Writes the files of all jobs."""
        with self.lock:
            for job in self.reports:
                self._write(job)

    def _write(self, job: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / f"{job}.json", json.dumps(summary(list(self.reports[job])), indent=1))
        self.written[job] = time.monotonic()


def summary(reports: list[BatchReport]) -> dict[str, Any]:
    """The figures of some micro-batches of one job; times are medians over the micro-batches that had records."""
    busy = [r for r in reports if sum(s.records_in for s in r.stats)] or reports
    records = sum(s.records_in for r in busy for s in r.stats)

    def slowest(name: str) -> float:
        return statistics.median(max((getattr(s, name) for s in r.stats), default=0.0) for r in busy)

    hot: Counter[str] = Counter()
    for report in busy:
        for stats in report.stats:
            for key, share in stats.hot:
                hot[key] += share * stats.records_in  # type: ignore[assignment]
    last = {stats.shard: stats for report in reports for stats in report.stats}
    return {
        "batches": len(busy),
        "records": records,
        "records_per_batch": records / len(busy),
        "batch_ms": statistics.median(r.seconds for r in busy) * 1000,
        "map_ms": slowest("map_ms"),
        "read_ms": slowest("read_ms"),
        "operator_ms": slowest("operator_ms"),
        "state_bytes": sum(stats.state_bytes for stats in last.values()),
        "shards": [_shard(busy, stats, records) for _, stats in sorted(last.items())],
        "hot": [
            {"key": key, "share": n / records}
            for key, n in hot.most_common(_HOT)
            if records and n > _DOMINANT * records
        ],
    }


def _shard(reports: list[BatchReport], last: Stats, records: int) -> dict[str, Any]:
    mine = [s for r in reports for s in r.stats if s.shard == last.shard]
    taken = sum(s.records_in for s in mine)
    return {
        "shard": last.shard,
        "records": taken,
        "share": taken / records if records else 0.0,
        "keys": last.keys,
        "open": last.open,
        "timers": last.timers,
        "state_bytes": last.state_bytes,
        "late": sum(s.late for s in mine),
        "dead": sum(s.dead for s in mine),
    }


def load(folder: Path, job: str) -> dict[str, Any] | None:
    """The figures of a job as last written; ``None`` if there are none."""
    path = folder / f"{job}.json"
    try:
        figures: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return figures
