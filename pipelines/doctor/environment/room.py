"""Checks that there are enough disk, memory and open files for the jobs and the embedded servers."""

from __future__ import annotations

import resource
import shutil

import psutil

from deploy.embedded.preflight import MINIMUM_DISK, OVERHEAD, available_memory, heap_bytes
from pipelines.contracts.quantities.cells import size
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject

_kind = subject("Environment")
_FULL = _kind(
    "DISK_FULL",
    Severity.BROKEN,
    "so little disk is free for the state directory that embedded servers do not start, and checkpoints will fail",
    "free space there, or move `state_dir` to a larger disk while nothing runs",
)
_LOW = _kind(
    "DISK_LOW",
    Severity.AT_RISK,
    "little disk is free for the state directory",
    "free space; a shorter `kafka.retention` or `retention.indices` keeps less (archive.md)",
)
_MEMORY = _kind(
    "MEMORY_SHORT",
    Severity.AT_RISK,
    "the heaps of Spark and the embedded servers do not fit into the memory of this machine or container",
    "smaller `engine.driver_memory`, `embedded.kafka_heap`, `embedded.elasticsearch_heap`; or servers elsewhere",
)
_FILES = _kind(
    "OPEN_FILES_FEW",
    Severity.AT_RISK,
    "a process may open few files, or has nearly as many open as it may: it will fail with `Too many open files`",
    "raise `ulimit -n` (65536), in a service with `LimitNOFILE=`, then start again",
)
_SPARE_DISK = 5 << 30
_FEWEST_FILES = 4_096
_NEARLY = 0.8


def disk(context: Context, least: int = MINIMUM_DISK, spare: int = _SPARE_DISK) -> list[Finding]:
    """Finds that there is little free disk for the state directory.

    Args:
        context: What is examined.
        least: Free bytes without which servers do not start.
        spare: Free bytes below which the disk counts as nearly full.
    """
    state = context.settings.state
    place = next(parent for parent in (state, *state.parents) if parent.exists())
    free = shutil.disk_usage(place).free
    if free >= spare:
        return []
    what = f"{size(free)} are free, {size(least)} are needed to start, {size(spare)} leave some room"
    return [Finding(_FULL if free < least else _LOW, what, str(state))]


def memory(context: Context) -> list[Finding]:
    """Finds that the heaps of what a start would start do not fit into the free memory; nothing while jobs run."""
    settings = context.settings
    heaps = {"engine.driver_memory": heap_bytes(settings.engine.driver_memory)}
    if not settings.kafka.bootstrap:
        heaps["embedded.kafka_heap"] = heap_bytes(settings.embedded.kafka_heap) + OVERHEAD["kafka"]
    if not settings.elasticsearch.url:
        heap = heap_bytes(settings.embedded.elasticsearch_heap)
        heaps["embedded.elasticsearch_heap"] = heap + OVERHEAD["elasticsearch"]
    needed, free = sum(heaps.values()), available_memory()
    if context.processes or free >= needed:
        return []
    what = f"{size(free)} of memory are free, up to {size(needed)} are needed"
    return [Finding(_MEMORY, what, ", ".join(heaps))]


def open_files(context: Context) -> list[Finding]:
    """Finds a low limit of open files for new processes, and running ones that come near theirs."""
    findings = []
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _FEWEST_FILES:
        what = f"a process that is started here may open {soft:,} files, {_FEWEST_FILES:,} or more are advised"
        findings.append(Finding(_FILES, what, "ulimit -n"))
    for process in context.processes:
        try:
            running = psutil.Process(process.pid)
            opened, most = running.num_fds(), running.rlimit(psutil.RLIMIT_NOFILE)[0]
        except (psutil.Error, AttributeError):  # it has just ended; or a system that does not say
            continue
        if most >= 0 and opened > _NEARLY * most:
            what = f"it has {opened:,} files and connections open, {most:,} are allowed"
            findings.append(Finding(_FILES, what, f"process {process.pid} ({', '.join(process.jobs)})"))
    return findings
