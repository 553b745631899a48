"""Says what would keep the stack from starting, starts it, and watches its containers until all of them are well."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.compose.containers import Container, Engine
from deploy.compose.project import Port, Stack, memory, ports
from deploy.embedded.ports import is_free
from engine.spec.errors import NewnormalError

MAP_COUNT = 262_144
"""The least `vm.max_map_count` with which Elasticsearch is supported."""
_MAP_COUNT_FILE = Path("/proc/sys/vm/max_map_count")
_NOW = "nothing was started"
_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 20.0
"""How long a container that is not well is watched after compose has ended with an error."""
Say = Callable[[str], None]


def problems(
    services: Mapping[str, Mapping[str, Any]],
    total: int,
    ours: Collection[int],
    *,
    embedded: bool = False,
    local: bool = True,
) -> Iterator[NewnormalError]:
    """Everything that is wrong, each as the error that a start would end with.

    Args:
        services: The services, see `Stack.services`.
        total: Memory of the engine, bytes.
        ours: Ports that containers of the stack have opened already.
        embedded: Whether Elasticsearch is the embedded one, which needs no larger `vm.max_map_count`.
        local: Whether the engine is on this machine; if not, its ports and kernel cannot be seen from here.
    """
    if local:
        yield from taken(ports(services), ours)
    if error := short_of_memory(memory(services), total):
        yield error
    if local and not embedded and sys.platform == "linux" and (error := low_map_count(_MAP_COUNT_FILE)):
        yield error


def taken(ports: Iterable[Port], ours: Collection[int] = ()) -> Iterator[NewnormalError]:
    """``STACK_PORT_TAKEN`` for each port at which another program listens."""
    for port in ports:
        if port.number not in ours and not is_free(port.number, port.address):
            variable = {"pipeline": "CONSOLE_PORT", "spark-master": "CLUSTER_PORT"}.get(
                port.service, f"{port.service.upper()}_PORT"
            )
            yield NewnormalError(
                "STACK_PORT_TAKEN",
                f"port {port.number} of {port.address}, which {port.service} needs, is taken by another program",
                f"{variable} in deploy/compose/.env",
                "a free port, e.g. one that is a thousand higher; or end the other program",
                _NOW,
            )


def short_of_memory(needed: int, total: int) -> NewnormalError | None:
    """``STACK_MEMORY`` if the engine has less memory than the services need together (both in bytes)."""
    if needed <= total:
        return None
    return NewnormalError(
        "STACK_MEMORY",
        f"the services need {needed / 2**30:.1f} GB of memory together, the engine has {total / 2**30:.1f} GB",
        "the engine's memory",
        "more memory (Docker Desktop: Settings, Resources), or fewer profiles",
        _NOW,
    )


def low_map_count(file: Path) -> NewnormalError | None:
    """``STACK_MAP_COUNT`` if ``file`` holds a lower `vm.max_map_count` than Elasticsearch needs."""
    try:
        count = int(file.read_text())
    except (OSError, ValueError):  # not this kind of system
        return None
    if count >= MAP_COUNT:
        return None
    return NewnormalError(
        "STACK_MAP_COUNT",
        f"vm.max_map_count = {count}, Elasticsearch needs {MAP_COUNT}",
        str(file),
        f"`sysctl -w vm.max_map_count={MAP_COUNT}` as root, and the same line in /etc/sysctl.d/ for later starts",
        _NOW,
    )


def check(stack: Stack, engine: Engine) -> list[NewnormalError]:
    """Everything that would keep the stack from starting.

    Raises:
        NewnormalError: ``COMPOSE_ABSENT`` or ``COMPOSE_REFUSED``.
    """
    ours = {port for container in engine.containers() for port in container.ports}
    found = problems(stack.services(), engine.memory, ours, embedded=stack.embedded, local=engine.local)
    return list(found)


def up(stack: Stack, engine: Engine, say: Say, seconds: float, build: bool | None = None) -> list[Container]:
    """Starts the stack; returns its containers when all are well.

    Args:
        stack: What is to run.
        engine: Where.
        say: Called with each step.
        seconds: How long that may take, without the build of the image.
        build: Whether to build our image; ``None``: if it is not there.

    Raises:
        NewnormalError: See `check`; ``STACK_BUILD_FAILED``, ``STACK_FAILED``.
    """
    if found := check(stack, engine):
        raise found[0]
    services = stack.services()
    image = str(services["pipeline"]["image"])
    if build or (build is None and not engine.has_image(image)):
        say(f"building {image}: minutes, once")
        if stack.run("build", "pipeline").returncode:
            what = f"the image {image} could not be built; the lines above say why"
            place, wanted = "deploy/image/Dockerfile", "access to the registries of Docker, Python, Debian and Maven"
            raise NewnormalError("STACK_BUILD_FAILED", what, place, wanted, "nothing was started")
    with tempfile.TemporaryFile("w+") as output:
        command = stack.command("--progress", "plain", "up", "--detach", "--no-build", "--remove-orphans")
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=stack.variables) as compose:
            try:
                return _watch(services, engine, say, compose, seconds)
            except _GivenUpError as error:
                output.seek(0)
                raise _failed(error, engine, output.read()) from None
            finally:
                compose.terminate()


class _GivenUpError(Exception):
    """The containers that are not well, when waiting has ended."""

    def __init__(self, why: str, containers: Iterable[Container]) -> None:
        super().__init__(why)
        self.containers = list(containers)


def _watch(
    services: Mapping[str, Any], engine: Engine, say: Say, compose: subprocess.Popen[bytes], seconds: float
) -> list[Container]:
    began, shown = time.monotonic(), dict[str, str]()
    ended: float | None = None
    while True:
        containers = [container for container in engine.containers() if container.service in services]
        now = time.monotonic()
        for container in containers:
            if shown.get(container.service) != container.words:
                shown[container.service] = container.words
                say(f"{now - began:5.0f} s  {container.service}: {container.words}")
        unwell = [container for container in containers if not container.well]
        if compose.poll() is not None and len(containers) == len(services) and not unwell:
            return containers
        if compose.poll() and ended is None:
            ended = now
        if compose.poll() is not None and any(container.failed for container in unwell):
            raise _GivenUpError("it has ended or is unhealthy", [container for container in unwell if container.failed])
        if ended is not None and now > ended + _PATIENCE_SECONDS:
            raise _GivenUpError("compose could not start it", unwell)
        if now > began + seconds:
            raise _GivenUpError(f"it was not well after {seconds:.0f} s", unwell)
        time.sleep(_LOOK_SECONDS)


def _failed(error: _GivenUpError, engine: Engine, output: str) -> NewnormalError:
    """The error for a stack that did not start: which service, why, and its last lines or those of compose."""
    named = ", ".join(f"{each.service} ({each.words})" for each in error.containers) or "the stack"
    lines = [engine.last_lines(each.service) for each in error.containers if each.state != "created"]
    told = next((text for text in lines if text), "") or " | ".join(output.strip().splitlines()[-3:])
    return NewnormalError(
        "STACK_FAILED",
        f"{named}: {error}: {told}",
        "newnormal stack logs",
        "the cause that the log names removed, then `newnormal stack up` again",
        "what has started goes on running; `newnormal stack down` stops it",
    )
