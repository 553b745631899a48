"""One server as a child process that cannot outlive its parent, and whose whole process group stops with it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.waiting import until

_PR_SET_PDEATHSIG = 1
_LOG_BYTES = 20_000_000
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Launch:
    """How to start a server; ``user`` is the uid and gid to run it as, ``None`` for one's own."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    directory: Path
    user: int | None = None


class ServerProcess:
    """A started server, its output appended to ``log``.

    On Linux the kernel kills it when the *thread* that started it ends, so it must be started from the main thread of a
    process that does nothing else: the supervisor.
    """

    def __init__(self, launch: Launch, log: Path) -> None:
        self.log = log
        parent = os.getpid()

        def die_with_parent() -> None:  # runs in the child, after the change of user, which would undo it
            if _LIBC is not None:
                _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)

        log.parent.mkdir(parents=True, exist_ok=True)
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".1.log"))
        with log.open("ab") as output:
            self._log_start = output.tell()
            self._process = subprocess.Popen(
                list(launch.argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=launch.directory,
                env=dict(launch.environ),
                user=launch.user,
                group=launch.user,
                extra_groups=[] if launch.user is not None else None,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509  the supervisor has one thread
            )
        self.pid = self._process.pid
        self.started = psutil.Process(self.pid).create_time()

    def exit_code(self) -> int | None:
        """The exit code, or ``None`` while it runs."""
        return self._process.poll()

    def listens_on(self, port: int) -> bool:
        """Whether this server, it or one of its children, is the one that listens on ``port``."""
        try:
            leader = psutil.Process(self.pid)
            sockets = [socket for one in (leader, *leader.children(recursive=True)) for socket in one.net_connections()]
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:  # the system does not say; then it must suffice that a server answers
            return True
        return any(socket.status == psutil.CONN_LISTEN and socket.laddr.port == port for socket in sockets)

    def terminate(self) -> None:
        """Asks the whole group to stop."""
        signal_group(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Ends the whole group at once, and what a dead leader left behind."""
        signal_group(self.pid, signal.SIGKILL)
        self._process.wait()

    def last_words(self) -> str:
        """The last lines of the output of this process; errors if there are any."""
        with self.log.open("rb") as written:
            written.seek(self._log_start)
            text = written.read().decode(errors="replace").splitlines()
        telling = [line for line in text if any(word in line for word in ("ERROR", "FATAL", "Exception", "rror:"))]
        return " | ".join(line.strip()[:300] for line in (telling or text)[-3:])


def signal_group(leader: int, number: signal.Signals) -> None:
    """Sends a signal to each process of the group led by ``leader``; none left is fine."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):  # macOS says PermissionError of a group of zombies
        return


def is_same_process(pid: int, started: float) -> bool:
    """Whether ``pid`` still is the process that started at ``started`` (epoch seconds), and not a later one."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 2 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(pid: int, started: float, seconds: float) -> bool:
    """Waits for a process, ours or not, to end; ``False`` if it has not after ``seconds``."""
    return until(lambda: not is_same_process(pid, started), seconds)
