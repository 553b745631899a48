"""A cache of what is worked out from short texts; long ones, which agents do not send, would fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from itertools import chain
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_REMEMBERED = 2048
"""The most characters of what is remembered."""


def remembered(size: int, length: Callable[..., int]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remembers the newest results of a function, but for those of long texts.

    Args:
        size: How many results are remembered.
        length: The characters in some arguments of the function.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(size)(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if length(*args, **kwargs) > LONGEST_REMEMBERED:
                return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type]

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
