"""Finds the processes that run jobs of a state directory and namespace.

Each such process writes a file into the state directory. The file of a process that has ended is ignored and removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from deploy.embedded.server_process import is_same_process
from engine.files import write_whole
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST


@dataclass(frozen=True)
class JobProcess:
    """A process that runs jobs.

    Attributes:
        pid: Its process id on this machine.
        started: When it started, epoch seconds; distinguishes it from a later process with the same id.
        url: Address of its web console.
        jobs: Names of its jobs.
        version: The version of the chain to which these belong.
    """

    pid: int
    started: float
    url: str
    jobs: tuple[str, ...]
    version: str = FIRST


@contextmanager
def announced(settings: Settings, url: str, jobs: Sequence[str]) -> Iterator[None]:
    """A context manager: while it is entered, `job_processes` finds this process.

    Args:
        settings: The settings; they hold the state directory, the namespace and the version.
        url: Address of this process's web console.
        jobs: Names of its jobs.
    """
    folder = _folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    mine = JobProcess(os.getpid(), psutil.Process().create_time(), url, tuple(jobs), settings.version)
    path = folder / f"{mine.pid}.json"
    write_whole(path, json.dumps(asdict(mine)))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def job_processes(settings: Settings) -> list[JobProcess]:
    """The processes that run now, sorted by process id; files of ended processes are removed."""
    running = {path: _alive(path) for path in _files(settings)}
    for path, process in running.items():
        if process is None:
            path.unlink(missing_ok=True)
    return _sorted(running.values())


def alive(settings: Settings) -> list[JobProcess]:
    """As `job_processes`, but files of ended processes stay."""
    return _sorted(map(_alive, _files(settings)))


def _files(settings: Settings) -> list[Path]:
    return sorted(_folder(settings).glob("[0-9]*.json"))


def _alive(path: Path) -> JobProcess | None:
    process = _read(path)
    return process if process and is_same_process(process.pid, process.started) else None


def _sorted(running: Iterable[JobProcess | None]) -> list[JobProcess]:
    return sorted((each for each in running if each), key=lambda process: process.pid)


def _folder(settings: Settings) -> Path:
    return settings.common_folder("processes")


def _read(path: Path) -> JobProcess | None:
    try:
        tree = json.loads(path.read_text())
        return JobProcess(
            int(tree["pid"]), float(tree["started"]), str(tree["url"]), tuple(tree["jobs"]), str(tree["version"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
