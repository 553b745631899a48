"""Marks the values in a masked log line that are known by their shape: addresses, paths, identifiers, key=value lists.

It works on the few distinct lines that `masking` leaves. Only the shape of a value decides: no rule knows the lines of
any one system. Most rules look at one word, and most words come again, so that their marks are remembered.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PIECE = r"(?:[\w-]|<n>)+"
_LOWER = r"(?:[a-z_-]|<n>)+"
_MARK = r"<(?:n|id|ip|host|path|time|\*)>"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

_Rules = tuple[tuple[str, re.Pattern[str], str], ...]


def _rules(*rules: tuple[str, str, str]) -> _Rules:
    return tuple((needle, re.compile(pattern), mark) for needle, pattern, mark in rules)


WORD = _rules(
    ('"', r'"[^"]*"', '"<*>"'),
    ("'", r"(?<!\w)'[^']*'(?!\w)", "'<*>'"),
    ("://", r"(?<![\w+.-])[\w+.-]*://\S*[^\s.,;)\]}'\"]", "<path>"),
    ("<ip>", r"(?<![\w.-])(?:[\w.-]|<n>)*/?<ip>(?:\.[a-z][\w.-]*)?(?:[:/]<n>)?", "<ip>"),
    # hosts: all pieces but the first are in lower case, as names of classes have capitals
    (".", rf"(?<![\w.$>-]){_PIECE}(?:\.{_LOWER})*\.[a-z]{{2,}}:<n>", "<host>"),
    (".", rf"(?<![\w.$>-]){_PIECE}(?:\.{_LOWER})+\.[a-z]{{2,}}(?![\w.$])", "<host>"),
    ("/", r"(?<![\w>/])~?/(?:[^,;:()\[\]{}\"'=<]|<n>|<id>|<ip>)+", "<path>"),
    ("\\", r"(?<![\w>])[A-Za-z]:\\(?:[^,;:()\[\]{}\"'=<]|<n>|<id>)+", "<path>"),
    # short hexadecimal words, and numbers glued to letters or to each other: "9f4ef63", "blk_-17", "2026-11-28"
    ("<", r"(?<![\w>])(?:[a-fA-F]{0,8}<(?:n|id)>)+[a-fA-F]{0,8}(?![\w<])", "<n>"),
    ("<", r"<?(?:[-+_.:#@/~]*<(?:n|id)>\w*)+", "<n>"),
    ("=", r"(?<=[\w\]]=)(?!true\b|false\b)[^,;(){}\[\]=\"'<]+", "<*>"),
    ("=<", rf"(?<=[\w\]]=){_MARK}(?:{_MARK}|[^,;(){{}}\[\]=\"'<])*", "<*>"),
)
"""What a word must contain for a rule to be tried, the shape of a value, and the mark that takes its place. The rules
are applied in this order. Each takes time proportional to the square of the length of a word at most."""

LINE = _rules(
    # sizes and durations: the unit changes with the value
    ("<n> ", r"<n> (?:[kKMGTP]i?B|B|secs?|mins?|hours?)\b", "<n>"),
    ("<n>", rf"\b{_MONTH}[a-z]*[ /-]<n>(?:,? <n>)*(?: [A-Z]{{3,4}}\b(?: <n>)?)?", "<time>"),
    ("<time>", rf"(?:\b{_DAY},? )?(?:<n>[ /-])?<time>", "<time>"),
    # parentheses around nothing but values explain the value before them
    (" (", rf" \((?:{_MARK}|[ ,;.:/-])*\)", ""),
    # values in a row are one list, but two or three numbers are not
    ("> ", rf"(?<!\S)((?!<n>)[^ <]*{_MARK})(?:[,;]? \1)+(?![^ ,;.)\]}}])", r"\1"),
    ("<n> <n> <n> <n>", r"<n>(?: <n>){3,}", "<n>"),
)
"""The same for shapes of several words."""

_QUOTED = re.compile(r'(?<==)"[^"]*"')


def shaped(line: str) -> list[str]:
    """The words of a masked line, with a mark in place of each value that is known by its shape.

    >>> " ".join(shaped("blk_-<id> of size <n> from /<ip>:<n>"))
    'blk<n> of size <n> from <ip>'
    >>> " ".join(shaped("www.example.com:<n> close, <n> bytes (<n> KB) sent, lifetime <<n> sec"))
    '<host> close, <n> bytes sent, lifetime <n>'
    >>> " ".join(shaped('lock=<n>, tag="View Lock", name=com.shop.app, held=true'))
    'lock=<*>, tag="<*>", name=<*>, held=true'
    """
    if '="' in line:
        line = _QUOTED.sub('"<*>"', line)
    return _marked(" ".join(map(_word, line.split())), LINE).split()


@lru_cache(65_536)
def _word(word: str) -> str:
    return word if word.isalpha() else _marked(word, WORD)


def _marked(text: str, rules: _Rules) -> str:
    for needle, pattern, mark in rules:
        if needle in text:
            text = pattern.sub(mark, text)
    return text
