"""Reads limits as people write them: a number, a percentage, or a number with a prefix such as ``20G``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite

from engine.spec.errors import NewnormalError

ACCEPTED = "a number in the unit of the metric; 95% for 0.95 of a ratio; k, M, G, T, P for thousands to 1e15, Ki to Pi"
_LIMIT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(%|(?:([kKMGTP])(i?))?B?)")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


@dataclass(frozen=True)
class Limit:
    """A limit for values.

    Args:
        value: The number with which values are compared.
        percent: Whether it was given as a percentage, and so is a share of 1.
    """

    value: float
    percent: bool = False


def limit(text: str, where: str) -> Limit:
    """Reads a limit.

    Prefixes are decimal, as in messages: ``20G`` and ``20GB`` are 20e9; with an ``i`` they are binary: ``1KiB`` is
    1024. There is no unit of time, as metrics measure it in seconds or milliseconds, and nothing says in which.

    Args:
        text: The text.
        where: The option that holds it, for error messages.

    Raises:
        NewnormalError: ``RULE_INVALID`` if the text is no limit.

    >>> limit("95%", "--above"), limit("20G", "--above").value, limit("4 KiB", "--below").value, limit("-1.5", "").value
    (Limit(value=0.95, percent=True), 20000000000.0, 4096.0, -1.5)
    >>> limit("500ms", "--above")
    Traceback (most recent call last):
    engine.spec.errors.NewnormalError: ... '500ms' is no limit...
    """
    read = _LIMIT.fullmatch(text.strip())
    if read is None:
        raise NewnormalError("RULE_INVALID", f"{text!r} is no limit", where, ACCEPTED, "nothing was written")
    number, unit, prefix, binary = read.groups()
    if unit == "%":
        bound = Limit(float(f"{float(number) / 100:.15g}"), percent=True)
    else:
        bound = Limit(float(number) * (1024 if binary else 1000) ** _POWERS[(prefix or "").upper()])
    if not isfinite(bound.value):
        raise NewnormalError(
            "RULE_INVALID", f"{text!r} is too large", where, "numbers of 64 bits", "nothing was written"
        )
    return bound
