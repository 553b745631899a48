"""What the driver measures of its jobs: a small JSON a job in the state directory, for `newnormal explain-job`."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

from engine.runtime.shard import Stats
from engine.spark.query import BatchReport

LAST = 50
"""Micro-batches over which is measured."""
_HOT = 5
_DOMINANT = 0.01


class JobMetrics:
    """Takes in batch reports; writes at most once in ``every`` seconds a job, and at the end.

    Args:
        folder: Where the files go.
        every: Seconds.
    """

    def __init__(self, folder: Path, every: float = 1.0) -> None:
        self.folder, self.every, self.lock = folder, every, threading.Lock()
        self.reports: dict[str, deque[BatchReport]] = {}
        self.written: dict[str, float] = {}

    def batch(self, report: BatchReport) -> None:
        """Takes in a micro-batch."""
        with self.lock:
            self.reports.setdefault(report.job, deque(maxlen=LAST)).append(report)
            if time.monotonic() >= self.written.get(report.job, float("-inf")) + self.every:
                self._write(report.job)

    def flush(self) -> None:
        """Writes what is not written yet."""
        with self.lock:
            for job in self.reports:
                self._write(job)

    def _write(self, job: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{job}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(summary(list(self.reports[job])), indent=1))
        part.replace(path)
        self.written[job] = time.monotonic()


def summary(reports: list[BatchReport]) -> dict[str, Any]:
    """Some micro-batches of one job in figures; times are medians of those that had records."""
    some = [r for r in reports if sum(s.records_in for s in r.stats)] or reports
    records = sum(s.records_in for r in some for s in r.stats)

    def slowest(name: str) -> float:
        return statistics.median(max((getattr(s, name) for s in r.stats), default=0.0) for r in some)

    hot: Counter[str] = Counter()
    for report in some:
        for stats in report.stats:
            for key, share in stats.hot:
                hot[key] += share * stats.records_in  # type: ignore[assignment]
    last = {stats.shard: stats for report in reports for stats in report.stats}
    return {
        "batches": len(some),
        "records": records,
        "records_per_batch": records / len(some),
        "batch_ms": statistics.median(r.seconds for r in some) * 1000,
        "map_ms": slowest("map_ms"),
        "read_ms": slowest("read_ms"),
        "operator_ms": slowest("operator_ms"),
        "state_bytes": sum(stats.state_bytes for stats in last.values()),
        "shards": [_shard(some, stats, records) for _, stats in sorted(last.items())],
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
    """The figures of a job as last written; ``None`` where there are none."""
    path = folder / f"{job}.json"
    try:
        figures: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return figures
