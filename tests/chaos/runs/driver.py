"""A pipeline of a chaos run: a command in a process of its own, kept alive as a service manager would."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pipelines
from deploy.embedded.server_process import Launch, ServerProcess
from engine.spec.errors import NewnormalError
from engine.waiting import until
from tests.chaos.runs.processes import Target, below, named

_STOP_SECONDS = 60.0


class DriverProcess:
    """A process of `newnormal run` or `newnormal replay`.

    Args:
        folder: Working directory, without a `newnormal.toml`.
        settings: Settings, as variables of the environment.
        log: File of its output.
        command: The command without options that change between starts.
    """

    def __init__(self, folder: Path, settings: dict[str, str], log: Path, *command: str) -> None:
        self.folder, self.settings, self.log, self._command = folder, settings, log, command
        self._process: ServerProcess | None = None

    def start(self, *options: str) -> None:
        """Starts the pipeline; must be called from the main thread, whose end the pipeline does not outlive."""
        self._process = self._started(*self._command, *options)

    def mend(self) -> bool:
        """Starts the pipeline again if it has ended; ``True`` if it had."""
        if self._process is None or self._process.exit_code() is None:
            return False
        self.start()
        return True

    @property
    def runs(self) -> bool:
        """True if it was started and not stopped since."""
        return self._process is not None

    def targets(self) -> list[Target]:
        """The driver, its JVM, and the Python workers."""
        return below(self._process.pid) if self._process else []

    def jvm(self) -> list[Target]:
        """The JVM of Spark."""
        return named(self.targets()[1:], "org.apache.spark")

    def workers(self) -> list[Target]:
        """Spark's Python processes: the daemon first, then those that it has forked."""
        return named(self.targets()[1:], "-m engine.spark.daemon")

    def replace(self) -> None:
        """Starts a second process that takes over from the first, as in an upgrade without a pause."""
        old = self._process
        self.start("--take-over")
        if old:
            _gone(old)

    def run_to_end(self, *command: str, seconds: float) -> None:
        """Runs a command in the pipeline's environment until it ends by itself.

        Raises:
            NewnormalError: ``CHAOS_RUN_FAILED`` if it fails, or does not end in time.
        """
        self._process = self._started(*command)
        code = _gone(self._process, seconds)
        if code != 0:
            how = "did not end" if code is None else f"ended with {code}"
            what = f"newnormal {' '.join(command)} {how}: {self._process.last_words()}"
            self.stop()
            raise NewnormalError("CHAOS_RUN_FAILED", what, str(self.log), "exit code 0")
        self._process = None

    def stop(self) -> None:
        """Ends the pipeline as Ctrl-C does, and kills what remains."""
        if self._process is None:
            return
        if self._process.exit_code() is None:
            os.kill(self._process.pid, signal.SIGTERM)
            _gone(self._process)
        self._process.kill()
        self._process = None

    def _started(self, *command: str) -> ServerProcess:
        argv = [sys.executable, "-m", "pipelines.cli.main", *command]
        return ServerProcess(Launch(argv, environment(self.settings), self.folder), self.log)


def environment(settings: dict[str, str]) -> dict[str, str]:
    """The environment of a command: that of this process, with the given settings instead of the user's."""
    root = str(Path(pipelines.__file__).parents[1])
    own = {name: value for name, value in os.environ.items() if not name.startswith("NEWNORMAL_")}
    path = os.pathsep.join(part for part in (root, own.get("PYTHONPATH", "")) if part)
    return own | {"PYTHONPATH": path} | settings


def _gone(process: ServerProcess, seconds: float = _STOP_SECONDS) -> int | None:
    """Waits for the end of a process; its exit code, or ``None`` if it runs on."""
    until(lambda: process.exit_code() is not None, seconds)
    return process.exit_code()
