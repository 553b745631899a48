"""The job that mines log templates, and counts lines by template and severity in windows.

First the variable parts of lines are masked: numbers, addresses and identifiers become marks such as `<n>`, and few
distinct lines are left. Other variable parts, such as names, are left to the miner. All is vectorised over lines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from engine.aggregates import Count, First, Min
from engine.spec.job import Job
from engine.spec.steps import Step
from engine.stream import Stream
from engine.windows import Sliding
from pipelines.contracts import topics
from pipelines.contracts.records import Log, LogFeatures
from pipelines.contracts.settings import Settings
from pipelines.jobs.sources import columnar, dead, internal
from pipelines.jobs.templates.mining import MineTemplates

LONGEST = 512
"""How many characters of a line decide its template; the rest is ignored."""

EXAMPLE = 1024
"""How many characters of a line are kept as an example."""

MARKS = {
    "<ip>": r"\b\d{1,3}(?:\.\d{1,3}){3}\b",
    "<id>": (
        r"\b(?:0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{8,}"
        r"|(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2})\b"
    ),
    "<n>": r"\d+(?:[.,:]\d+)*",
}
"""Each mark and the regular expression that it replaces, in the order in which they are applied."""


def masked(column: str) -> pl.Expr:
    """An expression: the text of a column, with its variable parts replaced by marks.

    >>> lines = pl.DataFrame({"m": ["retry 3 of 10.0.0.7:443 in 1.5s", "device 0xfe12 of 1b4e28ba"]})
    >>> lines.select(masked("m"))["m"].to_list()
    ['retry <n> of <ip>:<n> in <n>s', 'device <id> of <id>']
    """
    text = pl.col(column).cast(pl.String).str.head(LONGEST)
    for mark, pattern in MARKS.items():
        text = text.str.replace_all(pattern, mark)
    return text


@dataclass(frozen=True)
class Mask(Step):
    """Adds the column ``masked``, and cuts the column ``message`` to the length of an example.

    The program's name is masked too, as some names contain a process number.
    """

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        program = masked("program").str.replace_all(r"\s+", "_").cast(pl.Categorical)
        message = pl.col("message").str.head(EXAMPLE)
        return frame.with_columns(program=program, masked=masked("message").cast(pl.Categorical), message=message)

    def keeps(self, column: str) -> bool:
        return column not in ("masked", "message", "program")


def templates(settings: Settings) -> Job:
    """`logs` → `features.logs`: lines counted by template and by severity in event-time windows."""
    window = settings.window.size
    source = replace(internal(settings, topics.LOGS, Log, "time"), steps=(Mask(),))
    stream = (
        Stream.read(source)
        .key_by("entity", "program", "severity", "masked")
        .window(Sliding(window, every=window))
        .aggregate(count=Count(), first=Min("time"), example=First("message"))
        .process(MineTemplates())
    )
    late = columnar(settings, topics.LOGS_LATE, Log)
    return stream.write("templates", columnar(settings, topics.LOG_FEATURES, LogFeatures), dead(settings), late)
