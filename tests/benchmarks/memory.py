"""What each process of a pipeline holds: those of `newnormal run`, the gateway, the state view and the notifier.

The load is a simulated site that sends a sample of each series every ten seconds, after a history sent at once. Memory
is the proportional set size (PSS, proc(5)): pages that several processes share count once in their sum. The greatest of
all looks counts.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import psutil

from deploy.embedded.services import status
from engine.waiting import until
from pipelines.contracts.settings import load

PARTS = {
    "the servers' supervisor": r"embedded\.supervisor",
    "Kafka": r"kafka\.Kafka",
    "Elasticsearch": r"elasticsearch",
    "Spark's JVM": r"SparkSubmit",
    "Python workers": r"engine\.spark\.daemon|pyspark",
    "driver": r"main run\b",
    "gateway": r"main gateway",
    "state view": r"main view|multiprocessing",
    "notifications": r"main notify",
}
"""The parts of a pipeline, each with what the command lines of its processes contain."""
SERVERS = ("Kafka", "Elasticsearch", "the servers' supervisor")
BESIDE = (("gateway",), ("view",), ("notify", "run"))
"""Commands whose processes run beside the jobs."""
METRICS = 8
PATIENCE, LOOK_SECONDS, HISTORY = 300.0, 1.0, "10m"


@dataclass(frozen=True)
class Held:
    """Memory of some processes, bytes: resident, proportional, and what is theirs alone."""

    processes: int = 0
    rss: int = 0
    pss: int = 0
    uss: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(*(getattr(self, name) + getattr(other, name) for name in ("processes", "rss", "pss", "uss")))

    @classmethod
    def of(cls, process: psutil.Process) -> Held:
        """What a process holds; nothing if it has ended."""
        try:
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()[1:]
        except OSError:
            return cls()
        sizes = {name.rstrip(":"): int(size) << 10 for name, size, _ in map(str.split, lines)}
        return cls(1, sizes["Rss"], sizes["Pss"], sizes["Private_Clean"] + sizes["Private_Dirty"])


def look(roots: Sequence[psutil.Process]) -> dict[str, Held]:
    """What some processes and all that descend from them hold now, by part."""
    found: dict[str, Held] = {}
    for root in roots:
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                line = " ".join(process.cmdline())
                part = next((part for part, pattern in PARTS.items() if re.search(pattern, line)), "others")
                found[part] = found.get(part, Held()) + Held.of(process)
    return found


def ours(held: Mapping[str, Held]) -> int:
    """PSS of all but the servers."""
    return sum(each.pss for part, each in held.items() if part not in SERVERS)


@dataclass
class Watched:
    """A pipeline and what it has held at most.

    Args:
        state: Its state folder.
        environment: Settings of all its commands.
        options: Further options of `newnormal run`.
    """

    state: Path
    environment: Mapping[str, str]
    options: Sequence[str] = ()
    greatest: dict[str, Held] = field(default_factory=dict)
    together: dict[str, Held] = field(default_factory=dict)
    roots: list[psutil.Process] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The jobs with their servers, and the processes beside them."""
        with ExitStack() as stack, _receiver() as address:
            channel = f'{{"hook": {{"kind": "webhook", "url": "{address}"}}}}'
            more = {"NEWNORMAL_NOTIFY__CHANNELS": channel, "NEWNORMAL_STATE_DIR": str(self.state)}
            ports = {f"NEWNORMAL_{name}__PORT": "0" for name in ("CONSOLE", "GATEWAY", "VIEW", "NOTIFY")}
            self.environment = {**os.environ, **ports, **more, **self.environment}
            self._start(stack, "run", *self.options)
            settings = load(state_dir=self.state)
            if not until(lambda: status(settings), PATIENCE):
                raise RuntimeError((self.state / "run.log").read_text()[-4000:])
            for command in BESIDE:
                self._start(stack, *command)
            over = Event()
            looking = Thread(target=self._look, args=(over,), daemon=True)
            looking.start()
            try:
                yield
            finally:
                over.set()
                looking.join()

    def simulate(self, series: int, duration: str) -> subprocess.Popen[bytes]:
        """Starts a simulated site that sends for a while."""
        machines = max(series // METRICS, 2)
        hosts = max(machines // 5, 1)
        site = {"hosts": hosts, "vms": machines - hosts, "metrics": METRICS, "backfill": HISTORY, "duration": duration}
        return self.spawn("simulate", *(f"--{name}={value}" for name, value in site.items()))

    def spawn(self, *command: str) -> subprocess.Popen[bytes]:
        """Starts a command on the state folder."""
        words = [sys.executable, "-m", "pipelines.cli.main", *command]
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / f"{command[0]}.log").open("ab") as log:
            return subprocess.Popen(words, env=self.environment, stdout=log, stderr=log)

    def watch(self, done: Callable[[], bool]) -> None:
        """Waits until a condition holds.

        Raises:
            RuntimeError: A process has ended.
        """
        while not done():
            for root in self.roots:
                if not root.is_running() or root.status() == psutil.STATUS_ZOMBIE:
                    raise RuntimeError("\n".join(log.read_text()[-2000:] for log in self.state.glob("*.log")))
            time.sleep(LOOK_SECONDS)

    def _look(self, over: Event) -> None:
        """Notes what is held, if that is more than before, again and again."""
        while not over.wait(LOOK_SECONDS):
            held = look(self.roots)
            if ours(held) > ours(self.together):
                self.together = held
            for part, each in held.items():
                self.greatest[part] = max(each, self.greatest.get(part, Held()), key=lambda one: one.pss)

    def _start(self, stack: ExitStack, *command: str) -> None:
        process = self.spawn(*command)
        self.roots.append(psutil.Process(process.pid))
        stack.callback(process.wait, PATIENCE)
        stack.callback(process.send_signal, signal.SIGTERM)


@contextmanager
def _receiver() -> Iterator[str]:
    """The address of a web server that takes what it is told of incidents."""

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def run(series: int, minutes: float, small: bool) -> dict[str, Any]:
    """Measures; returns megabytes by part, the greatest of all looks."""
    with TemporaryDirectory() as folder:
        site = Watched(Path(folder), {}, ("--small",) if small else ())
        with site.running():
            load = site.simulate(series, "1d")
            try:
                end = time.monotonic() + 60 * minutes
                site.watch(lambda: time.monotonic() > end)
            finally:
                load.kill()
                load.wait()

    def figures(each: Held) -> dict[str, int]:
        megabytes = {name: round(getattr(each, name) / 1e6) for name in ("rss", "pss", "uss")}
        return {"processes": each.processes, **megabytes}

    return {
        "series": series,
        "small": small,
        "megabytes": {part: figures(site.greatest[part]) for part in [*PARTS, "others"] if part in site.greatest},
        "pss_of_all_but_servers": round(ours(site.together) / 1e6),
    }
