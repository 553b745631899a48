"""Policy windows: a trigger and an evictor instead of a span of time."""

from __future__ import annotations

from dataclasses import dataclass

from engine.triggers import Trigger
from engine.windows.evictors import Evictor
from engine.windows.sessions import Global


@dataclass(frozen=True)
class Policy(Global):
    """Each key has one window; ``trigger`` says when it gives a result, and ``evict`` which records count.

    ``Policy(AfterCount(10), KeepLast(100))`` gives a result after every 10 records, over the last 100.
    """

    trigger: Trigger
    evict: Evictor
