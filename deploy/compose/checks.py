"""What would keep the stack from starting: ports that are taken, too little memory, a limit of the kernel."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.compose.project import Port, memory, ports
from deploy.embedded.ports import is_free
from engine.spec.errors import NewnormalError

MAP_COUNT = 262_144
"""The least `vm.max_map_count` with which Elasticsearch is supported."""
_MAP_COUNT_FILE = Path("/proc/sys/vm/max_map_count")
_NOW = "nothing was started"


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
