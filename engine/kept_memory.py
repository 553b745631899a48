"""Memory that a process keeps although it has freed it."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

_ARENAS = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
_M_ARENA_MAX = -8
"""The parameter of mallopt(3) for it."""


def keep_little() -> None:
    """Lets this process, from now on, and those that it starts keep little of what they have freed.

    Each thread of a process would otherwise have a heap of its own, and Arrow's pool another, none of which uses what
    the others have freed. Variables of the environment that are set already stay; without glibc there is no difference.
    """
    for name, value in _ARENAS.items():
        os.environ.setdefault(name, value)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
