"""Shows records of any topic to people: with the names of the columns, and with times in ISO 8601 UTC."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_args

import orjson
import polars as pl
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from datagen.groundtruth import GroundTruth
from engine.formats.dead_letters import DeadLetter
from engine.printing import cell, visible
from engine.spec.duration import iso
from engine.spec.record import Record, TimeMs
from pipelines.contracts.records import ALL

R = TypeVar("R", bound=Record)


@cache
def instants() -> frozenset[str]:
    """The names of all columns, of any record type, that hold instants."""
    names = set()
    for record in (*ALL, DeadLetter, GroundTruth):
        for name, info in record.model_fields.items():
            marks = [*info.metadata, *(mark for part in get_args(info.annotation) for mark in get_args(part))]
            names |= {name} if any(isinstance(mark, TimeMs) for mark in marks) else set()
    return frozenset(names)


def readable(name: str, value: Any) -> Any:
    """A value as people read it: an instant becomes text, other values stay.

    Args:
        name: Name of the value's column.
        value: The value; an instant is in epoch milliseconds.

    >>> readable("window_end", 1_000), readable("value", 1_000)
    ('1970-01-01T00:00:01.000Z', 1000)
    """
    if name in instants() and isinstance(value, int) and not isinstance(value, bool):
        try:
            return iso(value)
        except (ValueError, OverflowError, OSError):
            return value
    return value


def line(row: Mapping[str, Any]) -> str:
    """A row as one line of JSON."""
    shown = {name: readable(name, value) for name, value in row.items()}
    return visible(orjson.dumps(shown, default=str).decode())


def of_record(record: Record) -> str:
    """A record as one line of JSON; fields without a value are left out."""
    return line(record.model_dump(mode="json", exclude_none=True))


def echo_records(records: Sequence[R], as_json: bool, show_records: Callable[[Sequence[R]], None]) -> None:
    """Prints records: each as a line of JSON, or all of them as a command shows them to people."""
    if not as_json:
        show_records(records)
        return
    for record in records:
        typer.echo(of_record(record))


def show(columns: Mapping[str, bool], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """Prints rows as a table if that fits the terminal, else each row as a block with a line per column.

    Args:
        columns: For each column its name, and whether it holds numbers.
        rows: The values of each row, in the order of the columns.
        title: Title of the table.
    """
    console = Console()
    shown = [[_short(name, value) for name, value in zip(columns, row, strict=True)] for row in rows]
    widths = [max(map(len, [visible(name), *(row[at] for row in shown)])) for at, name in enumerate(columns)]
    if sum(widths) + 3 * len(widths) + 1 <= console.width:
        numbers = [name for name, number in columns.items() if number]
        console.print(table(list(columns), shown, numbers, title=cell(title) if title else None, title_justify="left"))
        return
    if title:
        console.print(cell(title, "italic"))
    most = max(map(len, columns), default=0)
    for number_, row in enumerate(shown, 1):
        console.print(cell(f"{number_}", "dim"))
        for name, value in zip(columns, row, strict=True):
            if value:
                console.print(cell(f"  {name:<{most}}  {value}"), soft_wrap=True)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[str] = (), **style: Any
) -> Table:
    """A table of texts without markup.

    Args:
        columns: The names of the columns.
        rows: The values of each row; a `Text` keeps its style.
        numbers: Names of the columns that hold numbers.
        style: What `Table` takes beside; by default it is a plain table without lines.
    """
    shown = Table(**(style or {"box": None, "header_style": "dim", "padding": (0, 2, 0, 0)}))
    for name in columns:
        shown.add_column(cell(name), justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(value if isinstance(value, Text) else cell(value) for value in row))
    return shown


def frame(result: pl.DataFrame, title: str = "") -> None:
    """Prints the result of a query."""
    show({name: kind.is_numeric() for name, kind in result.schema.items()}, result.rows(), title)


def block(name: str, parts: Mapping[str, str]) -> None:
    """Prints a name, and below it named texts, one per line; empty texts are left out.

    Args:
        name: The heading.
        parts: Texts by name.
    """
    console = Console()
    console.print(cell(name, "bold"), soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=max(map(len, parts)) + 2)
    grid.add_column(overflow="fold")
    for title, text in parts.items():
        if text:
            grid.add_row(f"  {title}", cell(text))
    console.print(grid)


def _short(name: str, value: Any) -> str:
    found = readable(name, value)
    if found is None:
        return ""
    return visible(round(found, 6) if isinstance(found, float) else found)
