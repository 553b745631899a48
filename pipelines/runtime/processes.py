"""Which processes run jobs of a state directory and namespace: each leaves a file, believed only while it lives."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from deploy.embedded.server_process import is_same_process
from pipelines.contracts.settings import Settings


@dataclass(frozen=True)
class JobProcess:
    """A process that runs jobs.

    Attributes:
        pid: Its number on this machine.
        started: When it started, epoch seconds; tells it from a later process of the same number.
        url: Address of its console.
        jobs: Names of its jobs.
    """

    pid: int
    started: float
    url: str
    jobs: tuple[str, ...]


@contextmanager
def announced(settings: Settings, url: str, jobs: Sequence[str]) -> Iterator[None]:
    """Lets `found` find this process for the length of a block."""
    folder = _folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    mine = JobProcess(os.getpid(), psutil.Process().create_time(), url, tuple(jobs))
    path, part = folder / f"{mine.pid}.json", folder / f".{mine.pid}"
    part.write_text(json.dumps(asdict(mine)))
    part.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def found(settings: Settings) -> list[JobProcess]:
    """The processes that run now, by number; what dead ones left is removed."""
    alive = []
    for path in sorted(_folder(settings).glob("[0-9]*.json")):
        process = _read(path)
        if process and is_same_process(process.pid, process.started):
            alive.append(process)
        else:
            path.unlink(missing_ok=True)
    return sorted(alive, key=lambda process: process.pid)


def _folder(settings: Settings) -> Path:
    return settings.folder("processes")


def _read(path: Path) -> JobProcess | None:
    try:
        tree = json.loads(path.read_text())
        return JobProcess(int(tree["pid"]), float(tree["started"]), str(tree["url"]), tuple(tree["jobs"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
