"""A stack of containers that a test has for itself: its commands, and what can be asked of it from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from elasticsearch import ApiError

from deploy.compose.project import Stack
from deploy.embedded.endpoints import Endpoints
from deploy.embedded.ports import HOST
from engine.address import Address
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.settings import Settings, load

OFFICIAL = os.environ.get("STACK_IMAGES") == "official"
EMBEDDED = () if OFFICIAL else ("--embedded",)
_PORTS = ("CONSOLE_PORT", "KAFKA_PORT", "ELASTICSEARCH_PORT", "KIBANA_PORT", "GRAFANA_PORT")


@dataclass(frozen=True)
class Running:
    """A stack of its own.

    Args:
        variables: The variables that it is started with: its name and its ports.
    """

    variables: dict[str, str]

    @property
    def name(self) -> str:
        """Its name, which is in the names of its containers, network and volumes."""
        return self.variables["COMPOSE_PROJECT_NAME"]

    @property
    def endpoints(self) -> Endpoints:
        """Where its servers are reached from this machine, with the generated password of Elasticsearch."""
        kafka, elasticsearch = (self.variables[f"{name}_PORT"] for name in ("KAFKA", "ELASTICSEARCH"))
        return Endpoints(f"localhost:{kafka}", Address(f"http://{HOST}:{elasticsearch}", {"basic_auth": self.account}))

    @cached_property
    def account(self) -> tuple[str, str]:
        """User and password of Elasticsearch, which docs/compose.md says how to read."""
        shown = self.compose("exec", "-T", "pipeline", "cat", "/run/passwords/account")
        user, _, password = shown.stdout.strip().partition(":")
        assert password, shown.stderr
        return user, password

    def settings(self, state: Path, **given: Any) -> Settings:
        """Settings with these addresses, for what runs beside the stack on this machine."""
        return self.endpoints.settings(load(state_dir=state, **given))

    def newnormal(self, *arguments: str, seconds: float = 900) -> subprocess.CompletedProcess[str]:
        """Runs a command of ours on this machine."""
        command = [sys.executable, "-m", "pipelines.cli.main", *arguments]
        return subprocess.run(
            command, env={**os.environ, **self.variables}, capture_output=True, text=True, timeout=seconds, check=False
        )

    def compose(self, *arguments: str, seconds: float = 600) -> subprocess.CompletedProcess[str]:
        """Runs `docker compose` on the stack."""
        stack = Stack(("*",), not OFFICIAL, self.variables)
        return stack.run(*arguments, capture_output=True, timeout=seconds)

    def count(self, *filters: dict[str, Any]) -> int:
        """How many verdicts there are with these properties; 0 while no index can be read."""
        with elasticsearch_client(self.endpoints.elasticsearch_url, request_timeout=30) as client:
            try:
                return int(client.count(index="novelties", query={"bool": {"filter": list(filters)}})["count"])
            except ApiError as error:
                assert error.status_code in (404, 503), error
                return 0


@contextmanager
def stack_of_its_own(**variables: str) -> Iterator[Running]:
    """A stack that is not started yet; at the end it is removed with its data.

    Args:
        variables: Variables that take precedence over those of .env.
    """
    name = f"newnormal-test-{os.getpid()}-{time.monotonic_ns()}"
    running = Running({**_free_ports(), "COMPOSE_PROJECT_NAME": name, **variables})
    try:
        yield running
    finally:
        running.newnormal("stack", "down", "--volumes", "--yes")


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> float:
    """Waits until a condition is true; returns the seconds that this took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.5)
    return time.monotonic() - began


def _free_ports() -> dict[str, str]:
    sockets = [socket.create_server((HOST, 0)) for _ in _PORTS]
    found = {name: str(each.getsockname()[1]) for name, each in zip(_PORTS, sockets, strict=True)}
    for each in sockets:
        each.close()
    return found
