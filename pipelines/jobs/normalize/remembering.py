"""A cache of what is worked out from short texts; long ones, which agents do not send, would fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import chain
from typing import Any, TypeVar

R = TypeVar("R")

LONGEST_REMEMBERED = 2048
"""The most characters of what is remembered."""


def remembered(size: int, length: Callable[..., int]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Remembers the results of a function, but for those of long texts.

    Args:
        size: How many results are remembered. If there are more, all are forgotten.
        length: The characters in some arguments of the function.

    >>> asked = []
    >>> call = remembered(2, len)(lambda text: asked.append(text[:1]))
    >>> for text in ("a", "b", "a", "c", "c", "a", "x" * 5000, "x" * 5000):
    ...     call(text)
    >>> "".join(asked)
    'abcaxx'
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        known: dict[tuple[Any, ...], R] = {}

        @wraps(function)
        def call(*args: Any) -> R:
            try:
                return known[args]
            except (KeyError, TypeError):  # it is new, or cannot be a key
                found = function(*args)
            if length(*args) <= LONGEST_REMEMBERED:
                if len(known) >= size:
                    known.clear()
                known[args] = found
            return found

        return call

    return decorate


def characters(pairs: tuple[tuple[str, str], ...]) -> int:
    """The number of characters in pairs of texts; more than are remembered if one of them is no text.

    >>> characters((("a", "bc"), ("d", "")))
    4
    """
    try:
        return sum(map(len, chain.from_iterable(pairs)))
    except TypeError:
        return LONGEST_REMEMBERED + 1
