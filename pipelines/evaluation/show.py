"""Output of benchmarks and evaluations: a progress bar, tables, figures as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from engine.printing import cell


class _Rate(ProgressColumn):
    """How much is done in a second, where that is counted."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {self._unit}/s" if self._unit and speed else "", style="progress.data.speed")


@contextmanager
def bar(task: str, unit: str = "") -> Iterator[Callable[[float, float], None]]:
    """A progress bar on stderr, with the time left.

    Args:
        task: What is being done.
        unit: What is counted, such as ``values``: the bar also shows how many of them are done in a second.

    Yields:
        A function that must be called with how much is done, and how much there is in all.
    """
    columns = (
        TextColumn(task),
        BarColumn(),
        TaskProgressColumn(),
        _Rate(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        running = progress.add_task(task, total=1.0)
        yield lambda done, total: progress.update(running, completed=done, total=total)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a table on stderr; its first column holds text, the others numbers."""
    shown = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        shown.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        shown.add_row(*(cell(f"{value:.3f}" if isinstance(value, float) else value) for value in row))
    Console(stderr=True).print(shown)


def write(out: Path, name: str, figures: Mapping[str, Any]) -> None:
    """Writes figures to ``out/name.json``."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n")
