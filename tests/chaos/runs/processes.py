"""Processes as targets of faults: found among the children of this process, and named by id and time of start."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass

import psutil

from engine.spec.errors import NewnormalError


@dataclass(frozen=True)
class Target:
    """A process that this command has started, itself or through another one.

    Attributes:
        pid: Its process id.
        started: When it started, epoch seconds; a later process with the same id is not meant.
    """

    pid: int
    started: float

    def signal(self, number: signal.Signals) -> bool:
        """Sends a signal to this very process; ``False`` if it is gone."""
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if psutil.Process(self.pid).create_time() == self.started:
                os.kill(self.pid, number)
                return True
        return False

    def limit_files(self, size: int) -> None:
        """Limits the size of the files that the process writes (bytes): writes beyond it fail, as on a full disk."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            if process.create_time() == self.started:
                hard = process.rlimit(psutil.RLIMIT_FSIZE)[1]
                process.rlimit(psutil.RLIMIT_FSIZE, (size, hard))


def target(pid: int) -> Target:
    """One of the processes that this command has started.

    Raises:
        NewnormalError: ``CHAOS_FOREIGN`` if it is not: nothing else may be harmed.
        psutil.NoSuchProcess: If it has ended.
    """
    started = psutil.Process(pid).create_time()
    if pid not in {child.pid for child in psutil.Process().children(recursive=True)}:
        what = f"process {pid} was not started by this command"
        raise NewnormalError("CHAOS_FOREIGN", what, "newnormal chaos", "a child of this process", "it was left alone")
    return Target(pid, started)


def below(pid: int) -> list[Target]:
    """A process and all that it has started, if it runs; the process first. Some may end while they are listed."""
    found: list[Target] = []
    with suppress(psutil.NoSuchProcess):
        found.append(target(pid))
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                found.append(Target(child.pid, child.create_time()))
    return found


def named(targets: list[Target], *words: str) -> list[Target]:
    """Those of some processes whose command line holds all given words."""
    found = []
    for each in targets:
        with suppress(psutil.NoSuchProcess):
            line = " ".join(psutil.Process(each.pid).cmdline())
            if all(word in line for word in words):
                found.append(each)
    return found
