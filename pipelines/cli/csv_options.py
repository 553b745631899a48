"""Options of commands that read CSV files: what the columns mean and how numbers and times are written.

`reads_files` gives a command all of them; the command gets them as one argument, ``how``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from datagen.series import Reading
from pipelines.cli.option_set import option_set

_PANEL = "How files are read (recognised by default)"


def _option(*names: str, help: str) -> object:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL)


TimeColumn = Annotated[str | None, _option("--time-column", help="The column of times.")]
ValueColumns = Annotated[
    list[str] | None, _option("--value-column", help="A column of values, which is a metric; repeatable.")
]
EntityColumn = Annotated[str | None, _option("--entity-column", help="The column that names the machine of a line.")]
MetricColumn = Annotated[str | None, _option("--metric-column", help="The column that names the metric of a line.")]
Entity = Annotated[
    str | None, _option("--entity", help="Name of one machine for all files. Default: each file is a machine.")
]
Separator = Annotated[str | None, _option("--separator", help="The character between columns, or the word tab.")]
Decimal = Annotated[str | None, _option("--decimal", help="The decimal mark: . or ,")]
Timezone = Annotated[
    str | None, _option("--timezone", help="IANA name of the time zone of times without an offset. Default: UTC.")
]
DayFirst = Annotated[bool | None, _option("--day-first/--month-first", help="How dates such as 01/11/2026 are read.")]


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read, as the command line says.

    Attributes:
        reading: The values of all options, with their defaults.
        timezone: The time zone if the command line names one, else ``None``.
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
) -> ReadingOptions:
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
    return ReadingOptions(reading, timezone)


reads_files = option_set("how", _how)
"""A decorator: gives a command the options of how files are read; the command gets them as its argument ``how``.

A wrong value is refused when the command is called, with the code ``SETTING_INVALID``.
"""
