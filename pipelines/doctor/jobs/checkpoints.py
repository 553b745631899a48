"""Checks that the next start would accept the checkpoints, and that no lock of one outlives the process that took it.

It asks what a start asks, and changes nothing.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import psutil

from deploy.embedded.server_process import is_same_process
from engine.kafka import continuation, retained
from engine.spark import checkpoint_lock
from engine.spark.checkpoint_layout import compare_layout
from engine.spark.checkpoint_topics import standings
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.doctor.context import Context
from pipelines.doctor.finding import Finding, Severity, subject
from pipelines.jobs.chain import JOBS
from pipelines.jobs.links import LINKS
from pipelines.runtime import fingerprint

_kind = subject("Jobs")
_NOT_SO = Severity.BROKEN
_REFUSALS = {
    kind.code: kind
    for kind in (
        _kind(
            "SETTINGS_FIXED",
            _NOT_SO,
            "a setting differs from the value that a checkpoint was made with: a start is refused",
            "restore the old value; or `newnormal replay --as v2`, which computes a version with the new one",
        ),
        _kind(
            "SHARDS_FIXED",
            _NOT_SO,
            "`engine.shards` differs from the number that a checkpoint was made with: a start is refused",
            "restore the old number; or `newnormal savepoint restore --shards` (savepoints.md)",
        ),
        _kind(
            "STATE_FORMAT",
            _NOT_SO,
            "a checkpoint is of a release whose state this one cannot read: a start is refused",
            "run the release that made it; or begin in a new `namespace`, or replay",
        ),
        _kind(
            "CHECKPOINT_MISSING",
            _NOT_SO,
            "a job has written output, but its checkpoint is not here: a start is refused",
            "put the checkpoint back, or use the right `--state-dir` and `--namespace` (operations.md)",
        ),
        _kind(
            "CHECKPOINT_BEHIND",
            _NOT_SO,
            "a checkpoint is older than the output of its job: a start is refused",
            "put the newest checkpoint back (operations.md)",
        ),
        _kind(
            "OFFSETS_MISSING",
            _NOT_SO,
            "Kafka has deleted messages that a job has not read: a start is refused",
            '`engine.on_missing_offsets = "archive"` or `"earliest"` (operations.md), and a longer `kafka.retention`',
        ),
    )
}
_LOCKED = _kind(
    "LOCKED_BY_DEAD_PROCESS",
    Severity.BROKEN,
    "the process that locked a job's checkpoint has ended, but a child of it still has the lock: a start ends with "
    "`ALREADY_RUNNING`",
    "end the process that is named; `fuser FILE` also shows it",
)


def layouts(context: Context) -> list[Finding]:
    """Finds checkpoints of other settings, another number of shards or another release; it asks no server."""
    settings, jobs = context.settings, context.jobs
    sharded = [name for name in jobs if name in JOBS]
    return [
        *_asked(lambda: fingerprint.compare(settings, context.checkpoints, jobs)),
        *_asked(lambda: compare_layout(context.checkpoints, sharded, settings.engine.shards, "engine.shards")),
    ]


def continuations(context: Context) -> list[Finding]:
    """Finds output without its checkpoint, checkpoints older than their output, and messages that are gone."""
    settings, checkpoints = context.settings, context.checkpoints
    jobs = [JOBS[name](settings) for name in context.jobs if name in JOBS]
    outputs = {job.name: [each.topic for each in job.outputs if each != job.dead] for job in jobs}
    ledger, owner = settings.topic(topics.LEDGER), settings.owner
    found = _asked(lambda: continuation.check(context.bootstrap, owner, ledger, checkpoints, outputs))
    stand = standings(checkpoints, {name: LINKS[name].reads(settings) for name in context.jobs})
    return found + _asked(lambda: retained.check(context.bootstrap, checkpoints, stand, "fail", retained.ACCEPTED))


def _asked(check: Callable[[], object]) -> list[Finding]:
    """What a check of a start would refuse."""
    try:
        check()
    except NewnormalError as error:
        if error.code not in _REFUSALS:
            raise
        return [Finding(_REFUSALS[error.code], error.what, error.where, error.accepted)]
    return []


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
