"""Policy windows: when to look (a trigger) and what at (an evictor), instead of a span of time."""

from __future__ import annotations

from dataclasses import dataclass

from engine.triggers import Trigger
from engine.windows.evictors import Evictor
from engine.windows.sessions import Global


@dataclass(frozen=True)
class Policy(Global):
    """Each key has one window; ``trigger`` says when it gives a result, ``evict`` over which records.

    ``Policy(AfterCount(10), KeepLast(100))``: each 10 records, over the last 100.
    """

    trigger: Trigger
    evict: Evictor
