"""Shows the progress of a slow step on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

Say = Callable[[str], None]


def silent(_text: str) -> None:
    """Shows nothing, for callers that show progress themselves."""


@contextmanager
def saying(task: str, console: Console | None = None) -> Iterator[Say]:
    """Yields a function that shows the state of ``task``; at the end the time it took is shown."""
    console = console or Console(stderr=True)
    began = time.monotonic()
    if console.is_terminal:
        with console.status(task) as status:
            yield lambda text: status.update(f"{task}: {text} ({time.monotonic() - began:.0f} s)")
    else:
        console.print(f"{task} ...", highlight=False)
        yield silent
    console.print(f"{task}: done in {time.monotonic() - began:.1f} s", highlight=False)
