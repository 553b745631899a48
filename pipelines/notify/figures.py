"""Figures of a channel: what was sent, what failed, what waits. Its teller fills them, other threads read them."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ChannelFigures:
    """A channel at one moment; totals count from the start of the process.

    Attributes:
        name: The channel.
        sent: Messages that it took.
        failed: Attempts at which it did not take a message.
        given_up: Messages that it will never take, and that are not sent again.
        waiting: Incidents that it has to be told of now, and was not yet.
        suppressed: Incidents that quiet hours or the rate hold back.
        oldest: When the oldest of those that wait began to, epoch milliseconds; ``None``: nothing waits.
        failing_since: When it failed for the first time since it last worked, epoch milliseconds; ``None``: it works.
        reason: Why it failed last; empty while it works.
    """

    name: str
    sent: int = 0
    failed: int = 0
    given_up: int = 0
    waiting: int = 0
    suppressed: int = 0
    oldest: int | None = None
    failing_since: int | None = None
    reason: str = ""


class Tally:
    """Counts what becomes of the messages of a channel.

    Args:
        name: Name of the channel.

    >>> tally = Tally("night")
    >>> tally.due(["a", "b"], ["c"], 1_000)
    >>> tally.taken(["a"])
    >>> tally.failed("it answered 503", 2_000)
    >>> tally.due(["b", "c"], [], 3_000)
    >>> found = tally.figures()
    >>> found.sent, found.failed, found.waiting, found.suppressed, found.oldest, found.failing_since
    (1, 1, 2, 0, 1000, 2000)
    """

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self._figures = ChannelFigures(name)
        self._since: dict[str, int] = {}

    def figures(self) -> ChannelFigures:
        """The figures now."""
        with self._lock:
            oldest = min(self._since.values(), default=None)
            return replace(self._figures, waiting=len(self._since), oldest=oldest)

    def due(self, waiting: Collection[str], suppressed: Collection[str], now: int) -> None:
        """Says which incidents the channel has to be told of now, and which are held back."""
        with self._lock:
            self._since = {name: self._since.get(name, now) for name in waiting}
            self._figures = replace(self._figures, suppressed=len(suppressed))

    def taken(self, incidents: Collection[str], given_up: bool = False) -> None:
        """Says that the channel took a message on some incidents, or that the message is given up."""
        with self._lock:
            for name in incidents:
                self._since.pop(name, None)
            sent, gone = self._figures.sent + (not given_up), self._figures.given_up + given_up
            self._figures = replace(self._figures, sent=sent, given_up=gone)

    def failed(self, reason: str, now: int) -> None:
        """Says that the channel did not take a message."""
        with self._lock:
            since = self._figures.failing_since
            since = now if since is None else since
            failed = self._figures.failed + 1
            self._figures = replace(self._figures, failed=failed, failing_since=since, reason=reason)

    def works(self) -> None:
        """Says that the channel has taken all that it had to be told."""
        with self._lock:
            self._figures = replace(self._figures, failing_since=None, reason="")
