"""What the pipeline needs of the machine while it is disturbed: the memory and the open files of its processes."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.chaos.runs.driver import DriverProcess
from tests.chaos.runs.processes import Target

_EVERY_SECONDS = 30.0


class Footprint:
    """Writes, twice a minute, a line of JSON for the pipeline.

    A line has the time (epoch seconds), and for the driver, its JVM and the Python workers together: memory (bytes; of
    pages that processes share each has its part) and open files.

    Args:
        path: File to which lines are appended.
        driver: The pipeline.
    """

    def __init__(self, path: Path, driver: DriverProcess) -> None:
        self._path, self._driver, self._due = path, driver, 0.0

    def look(self) -> None:
        """Writes a line if it is time."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY_SECONDS
        driver = self._driver
        parts = {"driver": driver.targets()[:1], "jvm": driver.jvm(), "workers": driver.workers()}
        line = {"at": round(time.time(), 1)} | {name: _used(found) for name, found in parts.items()}
        with self._path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")


def _used(targets: list[Target]) -> dict[str, int]:
    found = {"processes": 0, "memory": 0, "files": 0}
    for each in targets:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(each.pid)
            found["memory"] += process.memory_full_info().pss
            found["files"] += process.num_fds()
            found["processes"] += 1
    return found
