r"""Shows foreign text on a terminal as it is, never as markup and never as a command to the terminal.

Anybody who may write to a topic can choose names of machines, messages and log lines. All code that prints them uses
this module.
"""

from __future__ import annotations

import re

from rich.text import Text

_PRINTABLE = re.compile(r"[ -~]*")


def visible(value: object) -> str:
    r"""Escapes control characters, line breaks and invisible marks as JSON does.

    For a JSON text on a single line, the result is JSON with the same meaning.

    >>> print(visible("a\x1b[2J\n[red]\u202eb"))
    a\u001b[2J\u000a[red]\u202eb
    """
    text = str(value)
    if _PRINTABLE.fullmatch(text):
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def visible_lines(text: str) -> str:
    r"""Makes a text of several lines safe to print, as `visible` does, but keeps its line breaks.

    >>> print(visible_lines("one\ntwo\r"))
    one
    two\u000d
    """
    return "\n".join(map(visible, text.split("\n")))


def cell(value: object, style: str = "") -> Text:
    """A cell or line for rich that shows a text as it is, without interpreting markup.

    >>> cell("[red]x").plain
    '[red]x'
    """
    return Text(visible(value), style)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
