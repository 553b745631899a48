"""Runs agents that are installed here, takes what they write, and reads it as `newnormal decode` does."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from engine.spec.time_bounds import TimeBounds
from pipelines.contracts.settings import load
from pipelines.formats import trial
from pipelines.formats.rules import Rules
from pipelines.formats.trial import Fate

_PATIENCE = 60.0


def installed(program: str, package: str) -> str:
    """The path of an agent; the test is skipped, saying what to install, if it is not there."""
    found = shutil.which(program, path="/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed here; Debian: apt-get install --no-install-recommends {package}")
    return found


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[None]:
    """Runs an agent in the foreground until the block ends."""
    with log.open("wb") as out:
        agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield
    finally:
        agent.terminate()
        try:
            agent.wait(20)
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.wait()


def until(done: Callable[[], bool], log: Path) -> None:
    """Waits; fails with the agent's own log if it takes longer than a minute."""
    end = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > end:
            pytest.fail(f"the agent wrote nothing that was waited for; its log: {log.read_text()[-2000:]}")
        time.sleep(0.1)


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Endpoint:
    """An HTTP server to which agents post.

    Attributes:
        bodies: What was posted, by path.
        port: Its port.
    """

    def __init__(self) -> None:
        bodies: dict[str, list[bytes]] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                bodies.setdefault(self.path, []).append(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self.bodies = bodies
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Endpoint:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def read(*values: bytes, **settings: Any) -> list[Fate]:
    """What becomes of messages whose format is guessed; ``settings`` are of the section input."""
    told = load(**{f"input.{name}": value for name, value in settings.items()})
    bounds = TimeBounds(told.watermark.max_ahead, told.watermark.earliest)
    return list(trial.fates(values, None, Rules.of(told.input), bounds, int(time.time() * 1000)))


def taken(fates: Sequence[Fate], form: str) -> list[dict[str, Any]]:
    """The samples or log lines of messages, all of which must have the format and be usable."""
    assert {fate.format for fate in fates} == {form}
    assert [fate.refused for fate in fates if fate.refused] == []
    return [row for fate in fates for row in (*fate.samples, *fate.lines)]


def received(interface: str = "lo") -> int:
    """Bytes that an interface has received, by the kernel."""
    (line,) = (each for each in Path("/proc/net/dev").read_text().splitlines() if each.strip().startswith(interface))
    return int(line.split(":")[1].split()[0])


def switches() -> int:
    """Context switches since the start of the machine, by the kernel."""
    (line,) = (each for each in Path("/proc/stat").read_text().splitlines() if each.startswith("ctxt"))
    return int(line.split()[1])


def memory(what: str = "MemTotal") -> int:
    """Bytes of memory, or of a part of it, by the kernel."""
    (line,) = (each for each in Path("/proc/meminfo").read_text().splitlines() if each.startswith(f"{what}:"))
    return int(line.split()[1]) * 1024


def processor() -> dict[str, int]:
    """Ticks that the processor has spent in each state since the start of the machine, by the kernel."""
    ticks = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    states = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return dict(zip(states, map(int, ticks), strict=False))
