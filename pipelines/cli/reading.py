"""Options of commands that read CSV files: what the columns mean and how numbers and times are written.

`reads_files` gives a command all of them; the command gets them as one argument, ``how``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from datagen.series import Reading

_PANEL = "How the files are read (recognised, unless said)"


def _option(*names: str, help: str) -> object:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL)


TimeColumn = Annotated[str | None, _option("--time-column", help="The column of times.")]
ValueColumns = Annotated[list[str] | None, _option("--value-column", help="A column of values, a metric; repeatable.")]
EntityColumn = Annotated[str | None, _option("--entity-column", help="The column that names the machine of a line.")]
MetricColumn = Annotated[str | None, _option("--metric-column", help="The column that names the metric of a line.")]
Entity = Annotated[str | None, _option("--entity", help="The machine of all files, instead of a machine each.")]
Separator = Annotated[str | None, _option("--separator", help="What separates columns: one character, or tab.")]
Decimal = Annotated[str | None, _option("--decimal", help="The decimal mark: . or ,")]
Timezone = Annotated[
    str | None, _option("--timezone", help="IANA name of the time zone of times without an offset. Default: UTC.")
]
DayFirst = Annotated[
    bool | None, _option("--day-first/--month-first", help="Whether in 01/11/2026 the day comes first.")
]


_OPTIONS = {
    "time_column": TimeColumn,
    "value_column": ValueColumns,
    "entity_column": EntityColumn,
    "metric_column": MetricColumn,
    "entity": Entity,
    "separator": Separator,
    "decimal": Decimal,
    "timezone": Timezone,
    "day_first": DayFirst,
}


@dataclass(frozen=True)
class How:
    """What a command line says of how files are read.

    Attributes:
        reading: All of it.
        timezone: The time zone if one was named, else ``None``.
    """

    reading: Reading
    timezone: str | None


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of how files are read, which it gets as its argument ``how``, a `How`.

    Raises:
        NewnormalError: ``SETTING_INVALID``, when the command is called.
    """
    hints = {name: kind for name, kind in get_type_hints(command, include_extras=True).items() if name != "how"}
    parameters = inspect.signature(command).parameters
    own = [parameters[name].replace(annotation=kind) for name, kind in hints.items() if name in parameters]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _OPTIONS.items()
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        said = {name: given.pop(name) for name in _OPTIONS}
        command(**given, how=_how(**said))

    run.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    run.__annotations__ = hints | _OPTIONS
    return run


def _how(value_column: list[str] | None, timezone: str | None, **others: Any) -> How:
    zone = "UTC" if timezone is None else timezone
    return How(Reading(value_columns=tuple(value_column or ()), timezone=zone, **others), timezone)
