"""Options of commands that read CSV files: what the columns mean and how numbers and times are written."""

from __future__ import annotations

from typing import Annotated

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


def reading(
    time_column: str | None,
    value_column: list[str] | None,
    entity_column: str | None,
    metric_column: str | None,
    entity: str | None,
    separator: str | None,
    decimal: str | None,
    timezone: str | None,
    day_first: bool | None,
) -> Reading:
    """These options together.

    Raises:
        NewnormalError: ``SETTING_INVALID``.
    """
    return Reading(
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
