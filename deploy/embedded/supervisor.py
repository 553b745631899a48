"""The process that starts and watches the servers, and stops them on request or when its owner is gone.

It is a process of its own because it must outlive its owner, the process that started it, by a few seconds. It
notices the end of the owner by the end of the pipe on its stdin and by its own parent id. If the supervisor itself is
killed, the kernel kills the servers (``server_process.py``); Elasticsearch's second process ends with its first.

The line ``detach`` on its stdin removes the owner. Its stdout reports events, one JSON object a line.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from deploy.embedded import state_file
from deploy.embedded.elasticsearch import Elasticsearch
from deploy.embedded.kafka import Kafka
from deploy.embedded.ports import HOST, PortClaims, is_free
from deploy.embedded.server_process import ServerProcess, is_same_process, signal_group
from engine.locks import try_lock
from engine.spec.errors import NewnormalError
from engine.waiting import until

if TYPE_CHECKING:
    from deploy.embedded.start_plan import AnyServer

START_SECONDS = 300
STOP_SECONDS = 6
_PORT_ATTEMPTS = 3
_RESTARTS = 3
_RESTART_WINDOW = 600.0


class _Stop(Exception):  # noqa: N818  not an error: the wish to end
    """Raised in the main loop when the owner is gone or a signal came."""


class Supervisor:
    """Runs ``servers`` with their logs and record under ``state``, on behalf of the process ``owner``."""

    def __init__(self, state: Path, servers: Sequence[AnyServer], owner: int) -> None:
        self._state, self._servers = state, servers
        self._owner: int | None = owner
        self._signalled = False
        self._claims = PortClaims(address=servers[0].listen if servers else HOST)
        self._ports: dict[str, dict[str, int]] = {}
        self._processes: dict[str, ServerProcess] = {}
        self._crashes: dict[str, list[float]] = {server.name: [] for server in servers}
        self._started = psutil.Process().create_time()

    def run(self) -> None:
        """Starts, watches and stops the servers; returns when no server is left.

        Raises:
            NewnormalError: ``SERVER_FAILED`` if one does not start or does not stay up.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        _kill_leftovers(self._state)
        state_file.remove(self._state)
        try:
            self._start()
            state_file.keep_ports(self._state, self._ports)
            self._write()
            say(event="ready")
            while True:
                self._pause()
                self._mend()
        except _Stop:
            pass
        finally:
            state_file.remove(self._state)  # first, so that no other command uses servers that are about to stop
            self._stop()

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._signalled = True

    def _start(self) -> None:
        began = time.monotonic()
        attempts = {server.name: 1 for server in self._servers}
        for server in self._servers:
            self._launch(server)
        waiting = {server.name: server for server in self._servers}
        while waiting:
            say(event="waiting", servers=list(waiting))
            self._pause()
            for name, server in list(waiting.items()):
                if (code := self._processes[name].exit_code()) is not None:
                    self._processes[name].kill()
                    stolen = not all(is_free(port, server.listen) for port in self._ports[name].values())
                    if not stolen or attempts[name] == _PORT_ATTEMPTS:
                        raise self._failed(name, f"ended with exit code {code} while starting")
                    attempts[name] += 1
                    self._launch(server)
                elif self._processes[name].listens_on(self._ports[name]["port"]) and server.is_ready(self._ports[name]):
                    del waiting[name]
                elif time.monotonic() - began > START_SECONDS:
                    raise self._failed(name, f"was not ready after {START_SECONDS} s")

    def _launch(self, server: AnyServer, keep_ports: bool = False) -> None:
        if not keep_ports:
            self._claims.release(self._ports.get(server.name, {}).values())
            wanted = dict(server.preferred) | state_file.kept_ports(self._state, server.name)
            self._ports[server.name] = self._claims.choose(wanted)
        launch = server.launch(self._ports[server.name])
        self._processes[server.name] = ServerProcess(launch, self._state / "logs" / f"{server.name}.log")

    def _mend(self) -> None:
        for server in self._servers:
            process = self._processes[server.name]
            if (code := process.exit_code()) is None:
                continue
            process.kill()
            now = time.monotonic()
            crashes = [at for at in self._crashes[server.name] if now - at < _RESTART_WINDOW] + [now]
            self._crashes[server.name] = crashes
            if len(crashes) > _RESTARTS:
                raise self._failed(server.name, f"ended {len(crashes)} times, last with exit code {code}")
            print(f"{server.name} ended with exit code {code}; starting it again", file=sys.stderr, flush=True)
            self._launch(server, keep_ports=True)
            self._write()

    def _failed(self, name: str, fault: str) -> NewnormalError:
        process, now = self._processes[name], "all embedded servers were stopped"
        what = f"{name} {fault}: {process.last_words()}"
        return NewnormalError("SERVER_FAILED", what, str(process.log), "see the log", now)

    def _pause(self) -> None:
        readable, _, _ = select.select([0] if self._owner is not None else [], [], [], 0.2)
        if readable:
            words = os.read(0, 4096)
            if words.startswith(b"detach"):
                self._owner = None
                self._write()
                say(event="detached")
                os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            elif not words:
                raise _Stop
        if self._signalled or (self._owner is not None and os.getppid() != self._owner):
            raise _Stop

    def _stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        until(lambda: all(p.exit_code() is not None for p in self._processes.values()), STOP_SECONDS)
        for process in self._processes.values():
            process.kill()

    def _write(self) -> None:
        servers = tuple(
            state_file.Server(
                s.name,
                str(s.address(self._ports[s.name])),
                p.pid,
                p.started,
                len(self._crashes[s.name]),
                s.password_file,
            )
            for s in self._servers
            for p in [self._processes[s.name]]
        )
        state_file.write(self._state, state_file.Running(os.getpid(), self._started, self._owner, servers))


def _kill_leftovers(state: Path) -> None:
    last = state_file.read_last(state)
    for server in last.servers if last else ():
        if is_same_process(server.pid, server.started):
            signal_group(server.pid, signal.SIGKILL)


def say(**event: object) -> None:
    """Reports an event to the owner, if it still listens."""
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps(event) + "\n").encode())


def _report(error: NewnormalError) -> None:
    print(error, file=sys.stderr)
    say(event="error", error=[error.code, error.what, error.where, error.accepted, error.now])


def main() -> None:
    """Runs the supervisor described by the JSON in the first argument."""
    plan = json.loads(sys.argv[1])
    kinds: dict[str, type[AnyServer]] = {"kafka": Kafka, "elasticsearch": Elasticsearch}
    servers = [kinds[name](**fields) for name, fields in plan["servers"].items()]
    state = Path(plan["state"])
    held = try_lock(state_file.lock_path(state))
    if held is None:
        say(event="busy")
        return
    with held:
        try:
            Supervisor(state, servers, plan["owner"]).run()
        except NewnormalError as error:
            _report(error)
        except OSError as error:
            _report(
                NewnormalError("SERVER_FAILED", str(error), str(state), "a usable state_dir", "no server is running")
            )


if __name__ == "__main__":
    main()
