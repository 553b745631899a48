"""Shows a chaos run: a table of its faults in a terminal, elsewhere a line for each thing that happens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tests.chaos.runs.report import Disturbance, by_kind

_ROWS = 18


class Display:
    """Shows what happens; a context manager.

    Args:
        console: Where it is shown.
    """

    def __init__(self, console: Console) -> None:
        self._console, self._began = console, time.monotonic()
        self._now, self._done = "", list[Disturbance]()
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=2)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def say(self, what: str) -> None:
        """Shows what happens now."""
        self._now = what
        self._line(what)

    def done(self, disturbance: Disturbance) -> None:
        """Shows a fault that is over."""
        self._done.append(disturbance)
        self._line(f"   lasted {disturbance.lasted:.1f} s; {_recovery(disturbance)}")

    def render(self) -> Group:
        """The table of the last faults, and what happens now."""
        table = Table("", "since the first result, s", "fault", "processes", "lasted, s", "recovery")
        for each in self._done[-_ROWS:]:
            pids = ", ".join(map(str, each.pids[:3])) + (" …" if len(each.pids) > 3 else "")
            table.add_row(
                str(each.number), f"{each.since:.0f}", each.fault, pids, f"{each.lasted:.1f}", _recovery(each)
            )
        return Group(table, Text(f"{time.monotonic() - self._began:.0f} s  {self._now}"))

    def _line(self, what: str) -> None:
        if not self._console.is_terminal:
            self._console.print(f"{time.monotonic() - self._began:6.0f} s  {what}", highlight=False, markup=False)


def summary(disturbances: Sequence[Disturbance]) -> Table:
    """A table of the median and worst recovery by kind of fault."""
    table = Table("fault", "count", "median recovery, s", "worst, s")
    for row in by_kind(disturbances):
        numbers = ("-" if row[name] is None else str(row[name]) for name in ("median_s", "worst_s"))
        table.add_row(row["fault"], str(row["count"]), *numbers)
    return table


def _recovery(disturbance: Disturbance) -> str:
    if disturbance.recovery is not None:
        return f"a new result after {disturbance.recovery:.1f} s"
    return "no result" if disturbance.waited else "the next fault follows at once"
