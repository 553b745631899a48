"""Checks that no lock of a checkpoint outlives the process that took it."""

from __future__ import annotations

import fcntl
from pathlib import Path

import psutil

from deploy.embedded.server_process import is_same_process
from engine.spark import checkpoint_lock
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject

_kind = subject("Jobs")
_LOCKED = _kind(
    "LOCKED_BY_DEAD_PROCESS",
    Severity.BROKEN,
    "the process that locked a job's checkpoint has ended, but a child of it still has the lock: a start ends with "
    "`ALREADY_RUNNING`",
    "end the process that is named; `fuser FILE` also shows it",
)


def locks(context: Context) -> list[Finding]:
    """Finds checkpoints that are locked though the process that took the lock has ended."""
    findings = []
    for path in sorted(context.checkpoints.glob("*.lock")):
        holder = checkpoint_lock.holder(context.checkpoints, path.stem)
        if not holder.pid or is_same_process(holder.pid, holder.started) or not _is_locked(path):
            continue
        holders = _having_open(path)
        by = f"process {', '.join(map(str, holders))} still has it" if holders else "a process still has it"
        findings.append(
            Finding(_LOCKED, f"{path.stem} was locked by process {holder.pid}, which has ended; {by}", str(path))
        )
    return findings


def _is_locked(path: Path) -> bool:
    """Whether a process has the lock; the file is not changed, and the lock is held for an instant at most."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _having_open(path: Path) -> list[int]:
    """The processes that have a file open, as far as this user may know."""
    pids = []
    for process in psutil.process_iter():
        try:
            if any(each.path == str(path) for each in process.open_files()):
                pids.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return pids
