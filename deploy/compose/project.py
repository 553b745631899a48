"""The compose stack as `docker compose` reads it: the commands that drive it, its services, their ports and memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.spec.errors import NewnormalError

FOLDER = Path(__file__).parent
NAME = "newnormal"
"""The name of the stack where `COMPOSE_PROJECT_NAME` gives no other, so that two may run beside each other."""
PROFILES = ("dashboards", "gateway", "load", "cluster")
ALL = ("*",)


@dataclass(frozen=True)
class Port:
    """A port that a service opens on the machine of the engine."""

    service: str
    address: str
    number: int


@dataclass(frozen=True)
class Stack:
    """What is to run.

    Args:
        profiles: The parts beside the core, of `PROFILES`; `ALL` for every one. Empty: those that .env chooses.
        embedded: Whether Kafka and Elasticsearch run from our own image, so that no registry is needed.
        environ: Variables that take precedence over those of .env.
    """

    profiles: Sequence[str] = ()
    embedded: bool = False
    environ: Mapping[str, str] | None = None

    def command(self, *arguments: str) -> list[str]:
        """The command line of `docker compose` for this stack."""
        files = ["compose.yaml", "embedded.yaml"] if self.embedded else ["compose.yaml"]
        named = [text for file in files for text in ("--file", str(FOLDER / file))]
        profiles = [text for profile in self.profiles for text in ("--profile", profile)]
        given = ["--project-name", name(self.variables), "--project-directory", str(FOLDER), *named, *profiles]
        return [_docker(), "compose", *given, *arguments]

    @property
    def variables(self) -> dict[str, str]:
        """The environment for `docker compose`."""
        return {**os.environ, **(self.environ or {})}

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs `docker compose` to its end; ``options`` are those of `subprocess.run`."""
        return subprocess.run(self.command(*arguments), text=True, env=self.variables, check=False, **options)

    def services(self) -> dict[str, dict[str, Any]]:
        """The services that would run, each as compose understands it, by name. No engine is needed.

        Raises:
            NewnormalError: ``ENGINE_ABSENT``, ``COMPOSE_ABSENT``; ``COMPOSE_REFUSED`` if the files or .env are wrong.
        """
        done = self.run("config", "--format", "json", capture_output=True)
        if done.returncode == 0:
            services: dict[str, dict[str, Any]] = json.loads(done.stdout)["services"]
            return services
        refusal = done.stderr.strip()
        if "is not a docker command" in refusal or "unknown flag" in refusal or "unknown shorthand flag" in refusal:
            what, accepted = "`docker compose` is not there", "Docker's plugin for compose, version 2.24 or newer"
            raise NewnormalError("COMPOSE_ABSENT", what, "docker compose", accepted, "nothing was started")
        place, accepted = str(FOLDER / ".env"), "what docs/compose.md says"
        refusal = refusal or "compose says nothing"
        raise NewnormalError("COMPOSE_REFUSED", refusal, place, accepted, "nothing was started")


def name(variables: Mapping[str, str] = os.environ) -> str:
    """The name of the stack, which is in the names of its containers, network and volumes."""
    return variables.get("COMPOSE_PROJECT_NAME") or NAME


def ports(services: Mapping[str, Mapping[str, Any]]) -> list[Port]:
    """The ports that services open."""
    return [
        Port(name, port.get("host_ip", "0.0.0.0"), int(port["published"]))
        for name, service in services.items()
        for port in service.get("ports", ())
        if port.get("published")
    ]


def memory(services: Mapping[str, Mapping[str, Any]], entry: str = "mem_reservation") -> int:
    """The memory that services need together (``mem_reservation``), or may use at most (``mem_limit``), in bytes."""
    return sum(int(service.get(entry, 0)) for service in services.values())


def _docker() -> str:
    program = shutil.which("docker")
    if program is None:
        raise NewnormalError(
            "ENGINE_ABSENT",
            "there is no command `docker` on this machine",
            "PATH",
            "Docker Engine or Docker Desktop, with compose; without it: `newnormal demo`, `newnormal run`",
            "nothing was started",
        )
    return program
