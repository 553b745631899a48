"""Memory that a process keeps although it has freed it."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

_LARGE, _TOP = 1 << 20, 1 << 23
"""Blocks from so many bytes on have memory of their own, which the system gets back with them; and so many bytes may be
free at the end of the heap. By itself glibc raises both to what was freed before, up to 32 and 64 MB: then columns
lie in the heap, which stays as large as it ever was."""
_KEPT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": f"{_LARGE}",
    "MALLOC_TRIM_THRESHOLD_": f"{_TOP}",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
_OPTIONS = {-8: 1, -3: _LARGE, -1: _TOP}
"""The parameters of mallopt(3) for the first three."""


def keep_little() -> None:
    """Lets this process, from now on, and those that it starts keep little of what they have freed.

    Each thread of a process would otherwise have a heap of its own, and Arrow's pool another, none of which uses what
    the others have freed, and large blocks would lie in them. Variables of the environment that are set already stay;
    without glibc there is no difference.
    """
    for name, value in _KEPT.items():
        os.environ.setdefault(name, value)
    with suppress(OSError, AttributeError):
        for option, number in _OPTIONS.items():
            ctypes.CDLL(None).mallopt(option, number)


def give_back() -> None:
    """Gives the system what this process has freed, which glibc keeps for what may come; some 10 ms a GB."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
