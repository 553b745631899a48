"""The file that says which servers run for a state directory; it counts only while its supervisor lives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from deploy.embedded import login
from deploy.embedded.endpoints import Endpoints
from deploy.embedded.server_process import is_same_process
from engine.files import write_whole


@dataclass(frozen=True)
class Server:
    """One running server.

    Attributes:
        name: ``kafka`` or ``elasticsearch``.
        address: Where it listens.
        pid: Its process.
        started: Start of that process, epoch seconds: it distinguishes it from a later one with the same id.
        restarts: How often it has been started again.
        password_file: File with its password; empty if it has no login, as those that an older version has started.
    """

    name: str
    address: str
    pid: int
    started: float
    restarts: int = 0
    password_file: str = ""


@dataclass(frozen=True)
class Running:
    """A supervisor and its servers. They end with the process ``owner``; ``None``: they are detached."""

    pid: int
    started: float
    owner: int | None
    servers: tuple[Server, ...] = field(default=())

    @property
    def endpoints(self) -> Endpoints:
        """Where the servers can be reached, with the login of their clients.

        Raises:
            NewnormalError: ``LOGIN_FILE`` if the file of a password cannot be read.
        """
        addresses = {server.name: login.address(server.address, server.password_file) for server in self.servers}
        return Endpoints(addresses.get("kafka", ""), addresses.get("elasticsearch", ""))


def lock_path(state: Path) -> Path:
    """The file whose lock a supervisor holds for as long as it lives."""
    return state / "services.lock"


def write(state: Path, running: Running) -> None:
    """Writes the file in one step."""
    write_whole(_path(state), json.dumps(asdict(running), indent=2))


def remove(state: Path) -> None:
    """Records that nothing runs."""
    _path(state).unlink(missing_ok=True)


def read(state: Path) -> Running | None:
    """The servers that run now; ``None`` if none runs, whatever an old file says."""
    last = read_last(state)
    return last if last and is_same_process(last.pid, last.started) else None


def read_last(state: Path) -> Running | None:
    """The content of the file, whether its servers still run or not."""
    try:
        tree = json.loads(_path(state).read_text())
        return Running(
            tree["pid"], tree["started"], tree["owner"], tuple(Server(**server) for server in tree["servers"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_ports(state: Path, ports: Mapping[str, Mapping[str, int]]) -> None:
    """Stores the ports of each server, since clients that wait for a server look for it at its last port."""
    (state / "ports.json").write_text(json.dumps(ports))


def kept_ports(state: Path, server: str) -> dict[str, int]:
    """The ports that a server had last; empty before its first start."""
    try:
        return {name: int(port) for name, port in json.loads((state / "ports.json").read_text())[server].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _path(state: Path) -> Path:
    return state / "services.json"
