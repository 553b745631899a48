"""Caches of what is worked out from short texts, which together hold a bounded number of bytes.

A series that comes with each message is read once. An agent that sends another series each time, used or refused, must
not fill the memory: all caches of a process share a budget, and when it is spent, all is forgotten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from itertools import chain
from typing import Any, TypeVar

R = TypeVar("R")

LONGEST_REMEMBERED = 2048
"""The most characters of what is remembered."""
MOST_BYTES = 128_000_000
"""The bytes that the caches of a process hold at most: those of some 200,000 series with five labels."""
_ENTRY = 200
"""Bytes of an entry beside its texts and tuples: its place in a table that grows by doubling."""


class _Budget:
    """The bytes that all caches hold.

    Attributes:
        held: An estimate of them; texts that entries share count for each.
        caches: The caches.
    """

    def __init__(self) -> None:
        self.held = 0
        self.caches: list[dict[Any, Any] | set[Any]] = []

    def add(self, key: Any, returned: Any) -> None:
        """Makes room for an entry; forgets all if there is none."""
        size = _ENTRY + held(key) + held(returned)
        if self.held + size > MOST_BYTES:
            for cache in self.caches:
                cache.clear()
            self.held = 0
        self.held += size


BUDGET = _Budget()
"""The budget of this process."""


def held(entry: Any) -> int:
    """The bytes of a text, or of tuples and records of texts.

    >>> 100 < held((("host", "a"), ("device", "sda"))) < 400
    True
    """
    size = sys.getsizeof(entry)
    if isinstance(entry, tuple):
        return size + sum(map(held, entry))
    return size + sum(held(getattr(entry, name)) for name in getattr(type(entry), "__slots__", ()))


def remembered(size: int, length: Callable[..., int]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Remembers the results of a function, but for those of long texts.

    Args:
        size: How many results are remembered. If there are more, these are forgotten.
        length: The characters in some arguments of the function.

    >>> asked = []
    >>> call = remembered(2, len)(lambda text: asked.append(text[:1]))
    >>> for text in ("a", "b", "a", "c", "c", "a", "x" * 5000, "x" * 5000):
    ...     call(text)
    >>> "".join(asked)
    'abcaxx'
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        results: dict[tuple[Any, ...], R] = {}
        BUDGET.caches.append(results)

        @wraps(function)
        def call(*args: Any) -> R:
            try:
                return results[args]
            except (KeyError, TypeError):  # it is new, or cannot be a key
                returned = function(*args)
            if length(*args) <= LONGEST_REMEMBERED:
                if len(results) >= size:
                    results.clear()
                BUDGET.add(args, returned)
                results[args] = returned
            return returned

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
