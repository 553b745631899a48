"""The containers of the stack as the engine sees them, through Docker's SDK."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
from docker.errors import DockerException

from deploy.compose.project import name
from engine.spec.errors import NewnormalError

_SECONDS = 30
LOG_LINES = 8


@dataclass(frozen=True)
class Container:
    """A container of the stack.

    Attributes:
        service: Name of its service.
        state: `created`, `running`, `restarting`, `exited`, ...
        health: `starting`, `healthy`, `unhealthy`; empty if the service has no check.
        code: Exit code; 0 while it runs.
        started: Instant of its last start, as the engine writes it.
        ports: The ports that it has opened on the engine's machine.
        once: Whether it has done its work when it has ended.
    """

    service: str
    state: str
    health: str = ""
    code: int = 0
    started: str = ""
    ports: tuple[int, ...] = ()
    once: bool = False

    @property
    def words(self) -> str:
        """Its state in a word or two."""
        if self.state == "exited":
            return "done" if self.once and self.code == 0 else f"exited with code {self.code}"
        return self.health if self.state == "running" and self.health else self.state

    @property
    def well(self) -> bool:
        """Whether it does what it should: it is healthy, runs without a check, or has done its work."""
        return self.words in ("healthy", "running", "done")

    @property
    def failed(self) -> bool:
        """Whether waiting longer will not help."""
        return self.words == "unhealthy" or self.state in ("dead", "removing") or (
            self.state == "exited" and not self.well
        )  # fmt: skip


class Engine:
    """A connection to the Docker engine that the environment names (``DOCKER_HOST``), by default the local one."""

    def __init__(self, client: docker.DockerClient) -> None:
        self._client = client
        info = client.info()
        self.version = str(info.get("ServerVersion", ""))
        self.memory = int(info.get("MemTotal", 0))
        base = str(client.api.base_url)
        self.local = base.startswith(("http+docker://", "npipe")) or "127.0.0.1" in base or "localhost" in base

    def containers(self) -> list[Container]:
        """The containers of the stack, those that have ended too, by name of the service."""
        return sorted((_container(each.attrs) for each in self._ours()), key=lambda each: each.service)

    def require(self) -> None:
        """Makes sure that the stack has containers.

        Raises:
            NewnormalError: ``STACK_ABSENT``.
        """
        if not self._ours():
            what, accepted = "no container of the stack runs", "`newnormal stack up`"
            raise NewnormalError("STACK_ABSENT", what, f"the stack {name()}", accepted, "nothing was changed")

    def has_image(self, image: str) -> bool:
        """Whether the engine has an image."""
        try:
            self._client.images.get(image)
        except docker.errors.ImageNotFound:
            return False
        return True

    def last_lines(self, service: str) -> str:
        """The last lines that the container of a service has written, in one line."""
        for each in self._ours():
            if each.labels.get("com.docker.compose.service") == service:
                text = each.logs(tail=LOG_LINES).decode(errors="replace")
                return " | ".join(line.strip()[:300] for line in text.splitlines() if line.strip())
        return ""

    def _ours(self) -> list[Any]:
        # a container of `docker compose run` is none of the stack
        wanted = [f"com.docker.compose.project={name()}", "com.docker.compose.oneoff=False"]
        found: list[Any] = self._client.containers.list(all=True, filters={"label": wanted}, ignore_removed=True)
        return found


@contextmanager
def engine() -> Iterator[Engine]:
    """The engine, for the length of a block.

    Raises:
        NewnormalError: ``ENGINE_ABSENT`` if none answers.
    """
    try:
        client = docker.from_env(timeout=_SECONDS)
        found = Engine(client)
    except (DockerException, OSError) as error:
        raise _absent(error) from None
    try:
        yield found
    finally:
        client.close()


def _absent(error: BaseException) -> NewnormalError:
    accepted = "a running engine: start Docker Desktop, or `systemctl start docker`"
    if "Permission denied" in str(error):
        accepted = "the right to use it: be in the group docker, or root"
    where = os.environ.get("DOCKER_HOST") or "/var/run/docker.sock"
    what = f"no Docker engine answers: {str(error).splitlines()[0][:300]}"
    return NewnormalError("ENGINE_ABSENT", what, where, accepted, "nothing was started")


def _container(attrs: dict[str, Any]) -> Container:
    """A container out of what the engine's API says of it."""
    state, config, host = attrs["State"], attrs["Config"], attrs["HostConfig"]
    opened = host.get("PortBindings") or {}
    return Container(
        config["Labels"]["com.docker.compose.service"],
        state["Status"],
        state.get("Health", {}).get("Status", "") if state["Status"] == "running" else "",
        int(state.get("ExitCode", 0)),
        state.get("StartedAt", ""),
        tuple(sorted({int(each["HostPort"]) for bound in opened.values() for each in bound or () if each["HostPort"]})),
        host.get("RestartPolicy", {}).get("Name") == "on-failure",
    )
