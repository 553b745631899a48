"""``make test``: all tests but the slow ones, by several runs of pytest that take turns.

Most tests compute, those with servers mostly wait: so two runs begin with the latter, each with servers of its own,
and others compute meanwhile. Who has nothing left helps with what is left.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ALL = "not slow and not stack"
ALONE = f"not servers and not spark and {ALL}"
"""What runs without servers run."""

WITH_SERVERS = 2
"""Runs that begin with the tests that need servers."""

MOST = 4
"""Runs without servers, on however many cores."""

NOTHING_SELECTED = 5
"""What pytest ends with where the options select no test."""


def main(options: Sequence[str]) -> int:
    """Runs all tests.

    Args:
        options: More options for each run of pytest.

    Returns:
        What they end with; see `ended`.
    """
    alone = min(max((os.cpu_count() or 2) - 1, 1), MOST)
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder) / "taken"
        taken.mkdir()
        command = [sys.executable, "-m", "pytest", "-p", "tests.taking_turns", f"--taken={taken}", "-m"]
        shown = subprocess.Popen([*command, ALONE, *options])
        others = []
        for number, selected in enumerate([ALL] * WITH_SERVERS + [ALONE] * (alone - 1)):
            log = Path(folder) / f"{number}.log"
            with log.open("wb") as output:
                others.append((subprocess.Popen([*command, selected, *options], stdout=output, stderr=output), log))
        try:
            shown.wait()
            print("Waiting for the runs beside this one, which have Kafka, Elasticsearch and Spark", flush=True)
        finally:  # Ctrl-C reaches all of them, and they stop their servers
            for run, log in others:
                run.wait()
                print(log.read_text(errors="replace"), flush=True)
    return ended([shown.returncode, *(run.returncode for run, _ in others)])


def ended(codes: Sequence[int]) -> int:
    """What all runs together end with: as one that failed; if there is none, with success if any run had a test.

    >>> ended([0, NOTHING_SELECTED, 0]), ended([0, 1, NOTHING_SELECTED]), ended([NOTHING_SELECTED])
    (0, 1, 5)
    """
    return next((code for code in codes if code not in (0, NOTHING_SELECTED)), min(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
