"""The agent of this machine: reads its metrics with psutil, once a second, into the same records as the simulator."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl
import psutil

from datagen.sinks import RecordSink
from datagen.wall_clock import Clock, WallClock

if TYPE_CHECKING:
    from datagen.pages import Pages, Samples

_NO_DISK = ("loop", "ram", "zram", "dm-", "sr", "fd")


class Agent:
    """Reads all metrics of this machine.

    Args:
        entity: Name of the machine in the records; empty: its host name.
        pages: Pages of metrics that are read, too; ``None``: none.
    """

    def __init__(self, entity: str = "", pages: Pages | None = None) -> None:
        self.entity, self.pages = entity or socket.gethostname(), pages
        psutil.cpu_times_percent(interval=None)  # the first call only remembers where the counters stand

    def sample(self, now: int) -> pl.DataFrame:
        """One sample of each metric, read at ``now`` (epoch ms): the columns of `Telemetry`."""
        parts = [_cpu(), _memory(), _disks(), _network(), _processes()]
        if self.pages is not None:
            parts.append(self.pages.samples())
        samples = [sample for part in parts for sample in part]
        names, values, kinds = zip(*samples, strict=True)
        frame = pl.DataFrame({"metric": names, "value": pl.Series(values, dtype=pl.Float64), "kind": kinds})
        at = [pl.lit(now, pl.Int64).alias("time"), pl.lit(self.entity).alias("entity")]
        return frame.select(*at, "metric", "value", "kind").filter(pl.col("value").is_finite())


def run_agent(
    sink: RecordSink,
    every: int = 1_000,
    *,
    stop: threading.Event | None = None,
    clock: Clock | None = None,
    agent: Agent | None = None,
    until: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Samples every ``every`` ms until ``stop`` is set or the clock reaches ``until`` (epoch ms).

    A reading that takes too long makes the next one late; missed readings are not repeated.

    Returns:
        Records sent.
    """
    stop, clock, agent = stop or threading.Event(), clock or WallClock(), agent or Agent()
    sent, due = 0, clock.now() + every
    while not stop.is_set() and (until is None or due <= until):
        clock.wait_until(due, stop)
        if stop.is_set():
            break
        frame = agent.sample(clock.now())
        sink.telemetry(frame)
        sent += frame.height
        due = max(due + every, clock.now())
        if progress:
            progress(sent)
    sink.flush()
    return sent


def _cpu() -> Samples:
    used = psutil.cpu_times_percent(interval=None)
    stats, load = psutil.cpu_stats(), psutil.getloadavg()
    return [
        ("cpu.util", min(max(1 - used.idle / 100, 0.0), 1.0), "ratio"),
        ("cpu.user", used.user / 100, "ratio"),
        ("cpu.system", used.system / 100, "ratio"),
        ("cpu.iowait", getattr(used, "iowait", 0.0) / 100, "ratio"),
        ("load.1m", load[0], "gauge"),
        ("load.5m", load[1], "gauge"),
        ("load.15m", load[2], "gauge"),
        ("kernel.context_switches", stats.ctx_switches, "counter"),
        ("kernel.interrupts", stats.interrupts, "counter"),
    ]


def _memory() -> Samples:
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return [
        ("mem.used", memory.used, "gauge"),
        ("mem.available", memory.available, "gauge"),
        ("mem.used_ratio", memory.percent / 100, "ratio"),
        ("mem.cached", getattr(memory, "cached", 0), "gauge"),
        ("swap.used", swap.used, "gauge"),
        ("swap.used_ratio", swap.percent / 100, "ratio"),
    ]


def _disks() -> Samples:
    out: Samples = []
    for path in sorted({"/", *(part.mountpoint for part in psutil.disk_partitions())}):
        try:
            usage = psutil.disk_usage(path)
        except OSError:
            continue  # it may not be read, or is gone
        out += [
            (f"disk.used{{path={path}}}", usage.used, "gauge"),
            (f"disk.used_ratio{{path={path}}}", usage.percent / 100, "ratio"),
        ]
    for device, io in sorted((psutil.disk_io_counters(perdisk=True) or {}).items()):
        if not device.startswith(_NO_DISK) and io.read_count + io.write_count:
            out += [
                (f"disk.read_bytes{{device={device}}}", io.read_bytes, "counter"),
                (f"disk.write_bytes{{device={device}}}", io.write_bytes, "counter"),
                (f"disk.reads{{device={device}}}", io.read_count, "counter"),
                (f"disk.writes{{device={device}}}", io.write_count, "counter"),
            ]
    return out


def _network() -> Samples:
    out: Samples = []
    for interface, io in sorted(psutil.net_io_counters(pernic=True).items()):
        if interface != "lo" and io.bytes_sent + io.bytes_recv:
            out += [
                (f"net.bytes_sent{{interface={interface}}}", io.bytes_sent, "counter"),
                (f"net.bytes_received{{interface={interface}}}", io.bytes_recv, "counter"),
                (f"net.packets_sent{{interface={interface}}}", io.packets_sent, "counter"),
                (f"net.packets_received{{interface={interface}}}", io.packets_recv, "counter"),
                (f"net.errors{{interface={interface}}}", io.errin + io.errout, "counter"),
            ]
    return out


def _processes() -> Samples:
    found = [process.info for process in psutil.process_iter(["status", "memory_info"])]
    sizes = [info["memory_info"].rss for info in found if info["memory_info"]]
    running = sum(info["status"] == psutil.STATUS_RUNNING for info in found)
    return [
        ("process.count", len(found), "gauge"),
        ("process.running", running, "gauge"),
        ("process.rss_top", max(sizes, default=0), "gauge"),
        ("process.rss_sum", sum(sizes), "gauge"),
    ]
