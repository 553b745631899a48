"""Output of benchmarks and evaluations: a progress bar, tables, figures as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from engine.explain.printing import cell


@contextmanager
def bar(task: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr; yields a function that must be called with the share that is done."""
    columns = (TextColumn(task), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        running = progress.add_task(task, total=1.0)
        yield lambda share: progress.update(running, completed=share)


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
