"""`newnormal` in a process that kills itself, with SIGKILL, when the archive has put so many files in their places.

The number is the first argument; the arguments of the command follow.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pipelines.cli.main import main
from pipelines.jobs.archive import files, layout

left = 0
"""How many files are still placed before the process ends."""


def place(made: Path, final: Path) -> None:
    """Puts a file in its place as the archive does, and ends the process after the last one."""
    global left  # noqa: PLW0603  counts over all calls
    layout.place(made, final)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    left = int(sys.argv.pop(1))
    files.place = place
    main()
