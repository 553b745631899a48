"""The pipeline of a chaos run: `newnormal run` in a process of its own, kept alive as a service manager would."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pipelines
from deploy.embedded.server_process import Launch, ServerProcess
from engine.spec.errors import NewnormalError
from pipelines.chaos.processes import Target, below, named

_STOP_SECONDS = 60.0


class DriverProcess:
    """A process of `newnormal run`.

    Args:
        folder: Working directory, without a `newnormal.toml`.
        environment: Settings, as variables of the environment.
        log: File of its output.
    """

    def __init__(self, folder: Path, environment: dict[str, str], log: Path) -> None:
        self._folder, self._environment, self.log = folder, environment, log
        self._process: ServerProcess | None = None
        self.unexpected_ends = 0

    def start(self, *options: str) -> None:
        """Starts the pipeline; must be called from the main thread, whose end the pipeline does not outlive."""
        root = str(Path(pipelines.__file__).parents[1])
        own = {name: value for name, value in os.environ.items() if not name.startswith("NEWNORMAL_")}
        path = os.pathsep.join(part for part in (root, own.get("PYTHONPATH", "")) if part)
        argv = [sys.executable, "-m", "pipelines.cli.main", "run", *options]
        environment = own | {"PYTHONPATH": path} | self._environment
        self._process = ServerProcess(Launch(argv, environment, self._folder), self.log)

    def mend(self) -> bool:
        """Starts the pipeline again if it has ended; ``True`` if it had."""
        if self._process is None or self._process.exit_code() is None:
            return False
        self.unexpected_ends += 1
        self.start()
        return True

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process; ``None`` while it runs, or if none was started."""
        return self._process.exit_code() if self._process else None

    def targets(self) -> list[Target]:
        """The driver, its JVM, and the Python workers."""
        return below(self._process.pid) if self._process else []

    def jvm(self) -> list[Target]:
        """The JVM of Spark."""
        return named(self.targets()[1:], "org.apache.spark")

    def workers(self) -> list[Target]:
        """Spark's Python processes: the daemon first, then those that it has forked."""
        return named(self.targets()[1:], "engine.spark.daemon")

    def replace(self) -> None:
        """Starts a second process that takes over from the first, as in an upgrade without a pause."""
        old = self._process
        self.start("--take-over")
        if old:
            _gone(old)

    def run_to_end(self, *options: str, seconds: float) -> None:
        """Runs the pipeline until it ends by itself.

        Raises:
            NewnormalError: ``CHAOS_RUN_FAILED`` if it fails, or does not end in time.
        """
        self.start(*options)
        assert self._process
        code = _gone(self._process, seconds)
        if code != 0:
            what = f"newnormal run {' '.join(options)} ended with {code}: {self._process.last_words()}"
            raise NewnormalError("CHAOS_RUN_FAILED", what, str(self.log), "exit code 0")
        self._process = None

    def stop(self) -> None:
        """Ends the pipeline as Ctrl-C does, and kills what remains."""
        if self._process is None:
            return
        if self._process.exit_code() is None:
            os.kill(self._process.pid, 15)
            _gone(self._process)
        self._process.kill()
        self._process = None


def _gone(process: ServerProcess, seconds: float = _STOP_SECONDS) -> int | None:
    """Waits for the end of a process; its exit code, or ``None`` if it runs on."""
    deadline = time.monotonic() + seconds
    while (code := process.exit_code()) is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return code
