"""The specifications of event-time windows. A window is a span of time [start, end), in epoch milliseconds."""

from engine.windows.aligned import Sliding, Tumbling
from engine.windows.calendar import Calendar
from engine.windows.evictors import Evictor, KeepLast, KeepRecent
from engine.windows.sessions import Global, Policy, Session
from engine.windows.window import Spans, Window

__all__ = [
    "Calendar",
    "Evictor",
    "Global",
    "KeepLast",
    "KeepRecent",
    "Policy",
    "Session",
    "Sliding",
    "Spans",
    "Tumbling",
    "Window",
]
