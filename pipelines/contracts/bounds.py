"""Bounds of metrics: where a series is full. Those of well-known names, and how a setting gives others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from engine.spec.duration import duration_ms
from pipelines.contracts.globs import compiled

NONE, TIME = "none", "time"
"""Of a metric that has no bound; of one whose value is the time at which it is full, in seconds since 1970."""

WELL_KNOWN: Mapping[str, str] = {
    # newnormal agent; Telegraf: disk, mem, swap, x509_cert
    "disk.used_ratio*": "0..1",
    "swap.used_ratio*": "0..1",
    "mem.used_ratio*": "0..1",
    "disk.used_percent*": "0..100",
    "disk.inodes_used_percent*": "0..100",
    "mem.used_percent*": "0..100",
    "swap.used_percent*": "0..100",
    "x509_cert.expiry*": "..0@14d",
    # OpenTelemetry: host metrics, kubelet statistics
    "system.filesystem.utilization*": "0..1",
    "system.memory.utilization*state=used*": "0..1",
    "system.paging.utilization*state=used*": "0..1",
    "k8s.volume.available*": "..0",
    "k8s.volume.inodes.free*": "..0",
    # Prometheus: node exporter, its recording rules, blackbox exporter, kubelet
    "node_filesystem_avail_bytes*": "..0",
    "node_filesystem_files_free*": "..0",
    "node_memory_MemAvailable_bytes*": "..0",
    "instance:*filesystem_used:ratio*": "0..1",
    "kubelet_volume_stats_available_bytes*": "..0",
    "kubelet_volume_stats_inodes_free*": "..0",
    "probe_ssl_earliest_cert_expiry*": "..time@14d",
    # collectd: df, memory, swap with percents
    "df*percent_bytes*used*": "0..100",
    "df*percent_inodes*used*": "0..100",
    "memory*percent*used*": "0..100",
    "swap*percent*used*": "0..100",
    # Metricbeat
    "system.filesystem.used.pct*": "0..1",
    "system.memory.actual.used.pct*": "0..1",
    "system.memory.swap.used.pct*": "0..1",
    # Zabbix: its templates for Linux and Windows
    "*Space: Used, in %*": "0..100",
    "*Space utilization*": "0..100",
    "Memory utilization*": "0..100",
    "*Free inodes in %*": "100..0",
    "*Inodes: Free, in %*": "100..0",
}
"""Bounds by glob of the metric; those of settings come before them."""


class Bound(NamedTuple):
    """The bound of a metric.

    Attributes:
        empty: Its value when nothing is used; NaN: it is not known.
        full: Its value when it is full; with ``of_time`` it has no meaning.
        of_time: True if the value is the time at which it is full, in seconds since 1970.
        within: It is told if it will be full within so many milliseconds; ``None``: as the setting says.
    """

    empty: float
    full: float
    of_time: bool = False
    within: int | None = None


def bound(text: str) -> Bound | None:
    """The bound that a text says: ``0..100``, ``100..0``, ``..0``, ``..time@14d`` or ``none``.

    Raises:
        ValueError: It says none.

    >>> bound("0..100"), bound("none")
    (Bound(empty=0.0, full=100.0, of_time=False, within=None), None)
    >>> bound("..time@14d")
    Bound(empty=nan, full=0.0, of_time=True, within=1209600000)
    """
    if text == NONE:
        return None
    values, _, within = text.partition("@")
    empty, dots, full = values.partition("..")
    if not dots or ("@" in text and not within):
        raise ValueError("no bound")
    start, end = float(empty) if empty else math.nan, 0.0 if full == TIME else float(full)
    if not math.isfinite(end) or start == end or (empty and not math.isfinite(start)):
        raise ValueError("no bound")
    return Bound(start, end, full == TIME, duration_ms(within) if within else None)


class Bounds:
    """Finds the bound of metrics by their names.

    Args:
        given: Bounds by glob; the first glob that matches applies, then those that are well known.

    >>> bounds = Bounds({"queue.*": "0..5000", "mem.*": "none"})
    >>> [bounds.of(name) is not None for name in ("queue.length", "mem.used_percent", "disk.used_percent", "load")]
    [True, False, True, False]
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        every = {**given, **{glob: text for glob, text in WELL_KNOWN.items() if glob not in given}}
        self._bounds = [(compiled((glob,)), bound(text)) for glob, text in every.items()]
        self._any = compiled(tuple(every))
        self._known: dict[str, Bound | None] = {}

    def of(self, metric: str) -> Bound | None:
        """The bound of a metric; ``None`` if it has none."""
        if metric not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._any.fullmatch(metric) is not None
            self._known[metric] = (
                next((b for glob, b in self._bounds if glob.fullmatch(metric)), None) if found else None
            )
        return self._known[metric]


_MOST = 100_000
"""Of so many metrics it is remembered which bound they have."""
