"""Reads lines of any log file of a machine, as `newnormal tail-file` finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import polars as pl
import pyarrow as pa

from engine.spec.decoder import ROW, Messages
from pipelines.contracts.records import Log
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.line_decoder import NO_PROGRAM
from pipelines.formats.rules import Rules
from pipelines.formats.text_logs import LEVELS, TextLogDecoder

_STAMP = (
    r"\[?(?<stamp>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?)\]?"
)
_LEVEL = rf"[\[(<]?(?<severity>(?i:{'|'.join(LEVELS)}))[\])>:,]*"

_BREAK = "\u2028"
"""Unicode's line separator, at which no decoder divides a message."""


class _ApplicationLines(TextLogDecoder):
    """Lines of applications: a time and a level at the beginning, both or one of them, or neither."""

    accepted = "accepted: any text"
    patterns = (
        rf"^{_STAMP}[\s|,-]+{_LEVEL}\s+(?<message>.+)$",
        rf"^{_STAMP}[\s|,:-]+(?<message>.+)$",
        rf"^{_LEVEL}\s+(?<message>.+)$",
        r"^(?<message>.+)$",
    )


class TailedLines:
    """Makes records of lines.

    Args:
        machine: The machine of lines that name none.
        rules: How fields are read.
    """

    def __init__(self, machine: str, rules: Rules) -> None:
        mine = replace(rules, machine=machine, labels=replace(rules.labels, default=machine))
        self._any_format, self._application = AnyFormatDecoder(Log, mine), _ApplicationLines(rules.zone, machine)

    def read(self, path: str, lines: Sequence[bytes], now: int) -> tuple[pl.DataFrame, int]:
        """The columns of `Log`, and how many lines cannot be used.

        A line of a known format is read as it says; any other is a line of an application. A line without a program is
        of the program that the file is called after.

        Args:
            path: The file.
            lines: Its lines; one may hold others that continue it.
            now: The time of lines that have none, epoch milliseconds.
        """
        whole = [line.replace(b"\n", _BREAK.encode()) for line in lines]  # what continues a line is no line of its own
        decoded = self._any_format.decode(Messages.of(whole, now))
        tables = [decoded.records]
        others = sorted({row for row, _, _ in decoded.refused} - set(decoded.records.column(ROW).to_pylist()))
        left = 0
        if others:
            again = self._application.decode(Messages.of([whole[row] for row in others], now))
            tables.append(again.among(np.array(others)).records)
            left = len(again.refused)
        frame = pl.from_arrow(pa.concat_tables(tables).unify_dictionaries())
        assert isinstance(frame, pl.DataFrame)
        program = pl.col("program").cast(pl.String)
        stem = PurePath(path).name.partition(".")[0] or PurePath(path).name
        frame = frame.sort(ROW, maintain_order=True).with_columns(
            program=pl.when(program == NO_PROGRAM).then(pl.lit(stem)).otherwise(program),
            message=pl.col("message").str.replace_all(_BREAK, "\n", literal=True),
        )
        return frame, left
