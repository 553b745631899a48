"""Counts the plain lines of Influx line protocol, several times faster than decoding them.

A line is plain if it consists of numbers and flags, has no quotes or escapes, and each of its fields becomes a record
of its own, whatever else its message holds: see `pipelines.formats.influx.InfluxDecoder.is_plain`. The latter
depends on its measurement and tags, which are the same in each message, so that it is remembered. One pattern reads the
whole message; it takes less than the decoder does, and whatever it does not take is left to the decoder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.formats.influx import InfluxDecoder
from pipelines.formats.remembering import BUDGET, LONGEST_REMEMBERED

LONGEST_KEY = 100
"""The most characters of the name of a field in a plain line."""
_MOST_LINES = 100_000
"""The most lines that are read in this way. Agents send some thousands; an empty one takes a hundred times its size."""
_NUMBER = r"-?[0-9]{1,20}+(?:[iu]|(?:\.[0-9]{1,20}+)?(?:[eE][-+]?[0-9]{1,2}+)?)"
_VALUE = rf"(?:{_NUMBER}|true|True|TRUE|false|False|FALSE|[tTfF])"
_FIELD = rf'[^ ,="\\\t\r\n]{{1,{LONGEST_KEY}}}+={_VALUE}'
_HEAD = rf'[^ ,#"\\\t\r\n][^ "\\\t\r\n]{{0,{LONGEST_REMEMBERED - 1}}}+'
_STAMP = r"-?[0-8]?[0-9]{1,18}+"
_LINE = re.compile(rf"(?m)^(?:({_HEAD}) ({_FIELD}(?:,{_FIELD})*+)(?: ({_STAMP}))?|(.*))$")
"""A plain line (head, fields, timestamp), or another."""
_NO_LINE = re.compile(r"[ \t\r]*(?:#.*)?")
_ACROSS = re.compile(r'\\(?:["\\]|$)')
"""Backslashes before which it is not plain to see where a text in quotes, or the line, ends."""


@dataclass(frozen=True)
class Counted:
    """What is found in a message.

    Args:
        fields: How many records the plain lines become.
        stamps: The distinct timestamps of plain lines.
        rest: The other lines, but comments and blank ones.
    """

    fields: int
    stamps: list[int]
    rest: bytes


class PlainLines:
    """Counts plain lines. Several threads may use it.

    Args:
        decoder: Decodes the lines.
    """

    def __init__(self, decoder: InfluxDecoder) -> None:
        self._decoder = decoder
        self._plain: set[str] = set()
        BUDGET.caches.append(self._plain)

    def count(self, value: bytes) -> Counted | None:
        """Counts the lines of a message; ``None`` if it is no text, has very many lines, or one may hold a line end."""
        if value.count(b"\n") >= _MOST_LINES:
            return None
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return None
        heads, fields, stamps, odd_lines = map(list, zip(*_LINE.findall(text), strict=True))
        others = [line for line in odd_lines if line]
        if any(line.count('"') % 2 or _ACROSS.search(line) for line in others):
            return None
        rest = [line for line in others if not _NO_LINE.fullmatch(line)]
        if odd := self._odd(set(heads)):
            lines = list(zip(heads, fields, stamps, strict=True))
            fields = [inside for head, inside, _ in lines if head not in odd]
            rest += [" ".join(filter(None, line)) for line in lines if line[0] in odd]
        distinct = [int(stamp) for stamp in set(stamps) if stamp]
        return Counted("".join(fields).count("="), distinct, "\n".join(rest).encode())

    def _odd(self, heads: set[str]) -> set[str]:
        """The heads of lines that are not plain."""
        new = heads - self._plain
        odd = {head for head in new if head and not self._decoder.is_plain(head, LONGEST_KEY)}
        for head in new - odd:
            BUDGET.add(head, None)
            self._plain.add(head)
        return odd
