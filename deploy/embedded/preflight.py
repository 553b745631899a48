"""Checks before the start that there is enough memory and disk for the servers, and reports a lack clearly."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import psutil

from engine.spec.errors import NewnormalError

OVERHEAD = {"kafka": 250 << 20, "elasticsearch": 450 << 20}
"""Measured memory of a server beyond its heap, bytes."""

MARGIN = 128 << 20
MINIMUM_DISK = 1 << 30
_CGROUP = Path("/sys/fs/cgroup")


def heap_bytes(heap: str) -> int:
    """Bytes of a heap setting.

    >>> heap_bytes("512m") >> 20, heap_bytes("2g") >> 20
    (512, 2048)
    """
    return int(heap[:-1]) << (30 if heap.endswith("g") else 20)


def available_memory(cgroup: Path = _CGROUP) -> int:
    """Memory that is free for new processes, bytes: that of the machine, or of the container if that is less."""
    left = int(psutil.virtual_memory().available)
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        if limit != "max":
            used = int((cgroup / "memory.current").read_text())
            stats = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
            left = min(left, int(limit) - used + int(stats.get("inactive_file", 0)))
    except (OSError, ValueError):  # no container, or one that does not say
        pass
    return left


def check_memory(heaps: dict[str, str], available: int) -> None:
    """Refuses to start servers that would not fit.

    Args:
        heaps: The heap setting of each server to be started, by its name.
        available: Free memory, bytes.

    Raises:
        NewnormalError: ``MEMORY_SHORT``.
    """
    needed = sum(heap_bytes(heap) + OVERHEAD[name] for name, heap in heaps.items()) + MARGIN
    if available < needed:
        named = ", ".join(f"embedded.{name}_heap = {heap}" for name, heap in heaps.items())
        raise NewnormalError(
            "MEMORY_SHORT",
            f"{available >> 20} MB of memory are free, {needed >> 20} MB are needed for {' and '.join(heaps)}",
            named,
            "smaller heaps (from 256m for kafka, 512m for elasticsearch), fewer other programs, or servers elsewhere "
            "(kafka.bootstrap, elasticsearch.url)",
            "no server was started",
        )


def check_disk(places: Iterable[Path], minimum: int = MINIMUM_DISK) -> None:
    """Refuses to start servers on a disk that is nearly full.

    Raises:
        NewnormalError: ``DISK_FULL``.
    """
    for place in places:
        existing = next(parent for parent in (place, *place.parents) if parent.exists())
        if (free := shutil.disk_usage(existing).free) < minimum:
            raise NewnormalError(
                "DISK_FULL",
                f"{free >> 20} MB are free, {minimum >> 20} MB are needed",
                str(place),
                "free space there, or another state_dir",
                "no server was started",
            )
