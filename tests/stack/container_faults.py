"""Faults of a container, done through Docker's SDK and undone at the end of a block."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import docker
from docker.errors import APIError
from docker.models.containers import Container

from tests.stack.running import wait_for


@dataclass(frozen=True)
class Victim:
    """The container of a service.

    Args:
        engine: The engine, on this machine.
        stack: Name of the stack.
        service: Name of the service.
    """

    engine: docker.DockerClient
    stack: str
    service: str

    @property
    def container(self) -> Container:
        """The container as it is now."""
        labels = [f"com.docker.compose.project={self.stack}", f"com.docker.compose.service={self.service}"]
        (found,) = self.engine.containers.list(all=True, filters={"label": labels})
        return found

    @property
    def network(self) -> Any:
        """The network of the stack."""
        return self.engine.networks.get(f"{self.stack}_default")


Fault = Callable[[Victim], AbstractContextManager[None]]


@contextmanager
def killed(victim: Victim) -> Iterator[None]:
    """`kill -9` of all its processes, as when memory runs out; that the engine starts it again is part of the test."""
    container = victim.container
    before = container.attrs["RestartCount"]
    container.exec_run(["sh", "-c", "kill -9 -1"], detach=True)
    yield
    wait_for(lambda: victim.container.attrs["RestartCount"] > before, 60, f"{victim.service} is started again")


@contextmanager
def paused(victim: Victim) -> Iterator[None]:
    """All its processes stand still; its connections stay open and nothing is answered."""
    container = victim.container
    wait_for(lambda: _stands_still(container), 60, f"{victim.service} is paused")
    try:
        yield
    finally:
        container.unpause()


def _stands_still(container: Container) -> bool:
    """Pauses a container, if the engine can: it gives up on one that begins processes faster than it freezes them."""
    try:
        container.pause()
    except APIError as error:
        if "unable to freeze" not in str(error):
            raise
        return False
    return True


@contextmanager
def disconnected(victim: Victim) -> Iterator[None]:
    """It has no network, and its name is unknown to the others; afterwards it may have another address."""
    container, network = victim.container, victim.network
    network.disconnect(container)
    try:
        yield
    finally:
        network.connect(container, aliases=[victim.service])


@contextmanager
def blackholed(victim: Victim) -> Iterator[None]:
    """Its network swallows all packets, in and out: nothing is refused, and nothing arrives."""
    pid = victim.container.attrs["State"]["Pid"]
    _rules("-A", pid)
    try:
        yield
    finally:
        if victim.container.attrs["State"]["Pid"] == pid:  # with the container, its network and the rules are gone
            _rules("-D", pid)


def can_blackhole() -> bool:
    """Whether this process may enter a container's network, and has the program that drops packets there."""
    return os.geteuid() == 0 and all(map(shutil.which, ("iptables", "nsenter")))


def _rules(change: str, pid: int) -> None:
    enter = ["nsenter", "--target", str(pid), "--net", "iptables", "--wait", change]
    for chain, interface in (("INPUT", "-i"), ("OUTPUT", "-o")):
        subprocess.run([*enter, chain, "!", interface, "lo", "-j", "DROP"], check=True, timeout=30)


FAULTS: Mapping[str, Fault] = {
    "kill": killed,
    "pause": paused,
    "disconnect": disconnected,
    "blackhole": blackholed,
}
