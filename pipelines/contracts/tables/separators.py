"""What stands between two fields of CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""The separators that are recognised, by the names that the settings give them."""


def recognised(lines: Sequence[str]) -> str:
    """The separator that divides most lines into as many fields as the first, and into more than one; else a comma.

    Args:
        lines: The header and some lines below it.

    >>> recognised(["time;host;cpu, percent", "1;a;0,5"]), recognised(["time", "1"])
    (';', ',')
    """
    there = [mark for mark in (";", "\t", ",", "|") if mark in lines[0]] if lines else []
    if len(there) < 2:
        return there[0] if there else ","

    def merit(separator: str) -> tuple[bool, float, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=separator)] or [0]
        except csv.Error:
            return False, 0.0, 0
        return widths[0] > 1, sum(width == widths[0] for width in widths) / len(widths), widths[0]

    best = max(there, key=merit)
    return best if merit(best)[0] else ","
