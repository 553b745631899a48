"""Lets only one process use a checkpoint: a lock on a file beside it, which the kernel releases when the process ends.

`engine.run` and `newnormal run` take the same lock.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import psutil

from engine.locks import try_lock
from engine.private_files import own_temporary_folder
from engine.spark.hadoop_path import HadoopPath
from engine.spec.errors import NewnormalError

NO_NAMESPACE = "default"
"""Folder of the checkpoints of jobs without a namespace."""


@dataclass(frozen=True)
class Holder:
    """The process that uses a checkpoint.

    Attributes:
        pid: Its process id; 0 if it is not known.
        started: Its start, epoch seconds, which distinguishes it from a later process with the same id.
    """

    pid: int = 0
    started: float = 0.0


def take(checkpoints: Path, job: str) -> IO[str] | None:
    """Takes the lock of a job's checkpoint, until the returned file is closed; ``None`` if another process has it."""
    held = try_lock(_path(checkpoints, job))
    if held is not None:
        held.truncate(0)
        held.write(json.dumps(asdict(Holder(os.getpid(), psutil.Process().create_time()))))
        held.flush()
    return held


def holder(checkpoints: Path, job: str) -> Holder:
    """The process that has the lock of a job's checkpoint, or had it last."""
    try:
        written = json.loads(_path(checkpoints, job).read_text())
        return Holder(int(written["pid"]), float(written["started"]))
    except (OSError, ValueError, TypeError, KeyError):
        return Holder()


@contextmanager
def taken(checkpoints: Path, jobs: Sequence[str]) -> Iterator[None]:
    """Context manager that holds the locks of some jobs' checkpoints.

    Raises:
        NewnormalError: ``ALREADY_RUNNING`` with the id of the process that has one of them.
    """
    with ExitStack() as held:
        for job in jobs:
            lock = take(checkpoints, job)
            if lock is None:
                what = f"{job} runs in process {holder(checkpoints, job).pid}"
                accepted = "that process ended; or another state directory"
                now = "nothing was started here, the other process goes on"
                raise NewnormalError("ALREADY_RUNNING", what, str(checkpoints), accepted, now)
            held.enter_context(lock)
        yield


def _path(checkpoints: Path, job: str) -> Path:
    if isinstance(checkpoints, HadoopPath):  # which has no locks: of this machine's processes one has it
        place = hashlib.sha256(str(checkpoints).encode()).hexdigest()[:16]
        return own_temporary_folder("checkpoints") / f"{place}-{job}.lock"
    return checkpoints / f"{job}.lock"
