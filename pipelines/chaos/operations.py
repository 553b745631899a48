"""What an operator does while a chaos run lasts: replays into a second version, keeps a savepoint, promotes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipelines.chaos.driver import DriverProcess, environment

SECOND = "v2"
_COMMAND_SECONDS = 120.0


@dataclass(frozen=True)
class Operation:
    """One thing that an operator does.

    Attributes:
        name: What it is called.
        due: At which share of the run it is done.
        act: Does it; ``False`` if it must be tried again later, as a server was away.
    """

    name: str
    due: float
    act: Callable[[], bool]


def operations(second: DriverProcess) -> Iterator[Operation]:
    """The operations of a run, in their order.

    Args:
        second: The process that replays into the second version and then keeps it live.
    """

    def begin() -> bool:
        second.start()
        return True

    yield Operation(f"replay into {SECOND}", 0.1, begin)
    yield Operation("savepoint", 0.3, lambda: command(second, "savepoint", "create", "chaos"))
    yield Operation(f"promote {SECOND}", 0.5, lambda: command(second, "promote", SECOND, "--yes"))
    yield Operation("promote v1", 0.75, lambda: command(second, "promote", "v1", "--yes"))


def command(driver: DriverProcess, *words: str) -> bool:
    """Runs a short command with a pipeline's settings; ``True`` if it succeeded."""
    with driver.log.open("ab") as log:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pipelines.cli.main", *words],
                env=environment(driver.settings),
                cwd=driver.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0
