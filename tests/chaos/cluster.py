"""A standalone Spark cluster on this machine: a master, and workers of one core each, which may be killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from deploy.java import java_home

HOST = "127.0.0.1"
_START_SECONDS = 600.0
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass
class StandaloneCluster:
    """A master and its workers; use `standalone`.

    Args:
        folder: Folder of their logs and working directories.
    """

    folder: Path
    url: str = ""
    master: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, workers: int) -> None:
        """Starts the master, then workers, and waits until these are registered."""
        there = ["--host", HOST, "--port", "0", "--webui-port", "0"]
        self.master = self._spawn("master", "org.apache.spark.deploy.master.Master", *there)
        self.url = self._wait_for("master", r"Starting Spark master at (spark://\S+)")
        self._wait_for("master", "New state: ALIVE")
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Starts one more worker and waits until the master knows it."""
        name = f"worker-{len(self.workers)}"
        given = ["--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "2g"]
        given += ["--work-dir", str(self.folder / f"{name}.work"), self.url]
        self.workers.append(self._spawn(name, "org.apache.spark.deploy.worker.Worker", *given))
        self._wait_for(name, "Successfully registered with master")

    def executors(self, worker: int | None = None) -> list[psutil.Process]:
        """The executors that run, of one worker or of all."""
        found = []
        for process in self.workers if worker is None else [self.workers[worker]]:
            with suppress(psutil.Error):
                # beside executors, a dead child of the shell that became the worker may be left as a zombie
                found += [each for each in psutil.Process(process.pid).children() if _is_executor(each)]
        return found

    def kill_executor(self, worker: int | None = None) -> int:
        """Kills an executor, of one worker or of any, with SIGKILL; its worker starts another. Returns its id."""
        victim = self.executors(worker)[0]
        victim.send_signal(signal.SIGKILL)
        return int(victim.pid)

    def loaded(self) -> set[str]:
        """The files that the Python workers of the executors have mapped: interpreters and compiled modules."""
        found = set[str]()
        for executor in self.executors():
            for process in executor.children(recursive=True):
                with suppress(psutil.Error):
                    found |= {each.path for each in process.memory_maps()}
        return found

    def kill_worker(self, worker: int) -> None:
        """Kills a worker with SIGKILL; its executors notice and end."""
        self.workers[worker].kill()
        self.workers[worker].wait(30)

    def stop(self) -> None:
        """Kills everything that is left."""
        mine = [each for each in (*self.workers, self.master) if each is not None]
        left = []
        for each in mine:
            with suppress(psutil.Error):
                left += psutil.Process(each.pid).children(recursive=True)
        for each in mine:
            each.kill()
            each.wait(30)
        for process in left:
            with suppress(psutil.Error):
                process.kill()

    def _spawn(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "JAVA_HOME": str(java_home()),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(home),
        }
        program = str(home / "bin" / "spark-class")
        with (self.folder / f"{name}.log").open("wb") as log:  # what an earlier cluster said there may not be read
            started = subprocess.Popen([program, *command], env=environment, cwd=self.folder, stdout=log, stderr=log)
        self.started[name] = started
        return started

    def _wait_for(self, name: str, said: str) -> str:
        """Waits until a log says something, a regular expression; returns what its last group matches."""
        log, deadline = self.folder / f"{name}.log", time.monotonic() + _START_SECONDS
        while (found := re.search(said, log.read_text())) is None:
            alive = self.started[name].poll() is None
            assert alive and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        return found[found.re.groups]


def _is_executor(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(_EXECUTOR in word for word in process.cmdline())
    return False


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[StandaloneCluster]:
    """A context manager: a cluster that runs."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = StandaloneCluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
