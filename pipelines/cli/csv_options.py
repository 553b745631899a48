"""Options of commands that read CSV files: what the columns mean and how numbers and times are written.

`reads_files` gives a command all of them; the command gets them as one argument, ``how``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from datagen.series import Reading
from pipelines.cli.option_set import option_set

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


@dataclass(frozen=True)
class How:
    """What a command line says of how files are read.

    Attributes:
        reading: All of it.
        timezone: The time zone if one was named, else ``None``.
    """

    reading: Reading
    timezone: str | None


def _how(
    *,
    time_column: TimeColumn = None,
    value_column: ValueColumns = None,
    entity_column: EntityColumn = None,
    metric_column: MetricColumn = None,
    entity: Entity = None,
    separator: Separator = None,
    decimal: Decimal = None,
    timezone: Timezone = None,
    day_first: DayFirst = None,
) -> How:
    reading = Reading(
        time_column=time_column,
        value_columns=tuple(value_column or ()),
        entity_column=entity_column,
        metric_column=metric_column,
        entity=entity,
        separator=separator,
        decimal=decimal,
        timezone="UTC" if timezone is None else timezone,
        day_first=day_first,
    )
    return How(reading, timezone)


reads_files = option_set("how", _how)
"""Decorates a command: gives it the options of how files are read; it gets them as its argument ``how``, a `How`.

A setting that makes no sense is refused when the command is called, with the code ``SETTING_INVALID``.
"""
