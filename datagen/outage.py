"""Reports outages of Kafka to the user of a source: while one lasts, when it is over, and what was dropped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.spec.duration import iso

Tell = Callable[[str], None]
"""Function that shows a sentence to the user."""

_SILENCE = 5.0
"""Seconds without an answer after which an outage is reported."""
_AGAIN = 10.0
"""Seconds between two reports of the same outage."""


@dataclass(frozen=True)
class Standing:
    """The state of a writer.

    Args:
        waiting: Number of records that Kafka has not acknowledged.
        delivered: Number of records that Kafka has acknowledged.
    """

    waiting: int
    delivered: int


@dataclass(frozen=True)
class Dropped:
    """Records that were dropped.

    Args:
        records: Their number.
        first: When the first of them was taken in, epoch ms.
        last: When the last of them was taken in, epoch ms.
        reason: The reason, as the end of a sentence.
    """

    records: int
    first: int
    last: int
    reason: str

    def __add__(self, other: Dropped) -> Dropped:
        return Dropped(
            self.records + other.records, min(self.first, other.first), max(self.last, other.last), self.reason
        )

    def __str__(self) -> str:
        return f"{self.records:,} records of {iso(self.first)} to {iso(self.last)} were dropped: {self.reason}"


class Outage:
    """Notices from the state of a writer that Kafka does not answer, and reports it.

    Kafka does not answer if records wait and none has been acknowledged for 5 seconds.

    Args:
        tell: Function that is called with each sentence.
        where: Where the records wait, as part of a sentence.
        clock: Monotonic clock, seconds.

    >>> at = [0.0]
    >>> outage = Outage(print, "in the buffer", lambda: at[0])
    >>> outage.update(Standing(10, 90)); at[0] = 6.0; outage.update(Standing(1234, 90))
    kafka: no answer for 6 s; 1,234 records wait in the buffer, trying again
    >>> at[0] = 8.0; outage.update(Standing(1000, 400)); outage.update(Standing(3, 1400))
    kafka: answers again after 8 s; the 1,310 records that had waited were delivered
    """

    def __init__(self, tell: Tell, where: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.reason = ""  # the cause, if it is known
        self._tell, self._where, self._clock = tell, where, clock
        self._answered, self._reported_at = clock(), 0.0
        self._last = Standing(0, 0)
        self._lasted, self._goal = 0.0, 0  # an outage that has ended: its seconds; what is delivered when it is made up
        self._waited = 0
        self._dropped: dict[str, Dropped] = {}
        self._news: dict[str, Dropped] = {}
        self._drops_told = float("-inf")
        self._lock = threading.Lock()

    @property
    def silence(self) -> float:
        """Seconds since Kafka answered; since anything waited, if that is less."""
        return self._clock() - self._answered

    def update(self, standing: Standing) -> None:
        """Takes in the state of the writer now, and reports what is new."""
        now, before = self._clock(), self._last
        self._last = standing
        if not standing.waiting or standing.delivered > before.delivered:
            if self._reported_at:
                self._lasted, self._reported_at = self._lasted + now - self._answered, 0.0
                self._waited = standing.delivered - before.delivered + standing.waiting
                self._goal = before.delivered + self._waited
            self._answered = now
        elif now - self._answered >= _SILENCE and now - (self._reported_at or float("-inf")) >= _AGAIN:
            self._reported_at = now
            why = f" ({self.reason})" if self.reason else ""
            self._tell(
                f"kafka: no answer for {now - self._answered:.0f} s{why}; "
                f"{standing.waiting:,} records wait {self._where}, trying again"
            )
        if self._lasted and not self._reported_at and (standing.delivered >= self._goal or not standing.waiting):
            self._tell(
                f"kafka: answers again after {self._lasted:.0f} s; "
                f"the {self._waited:,} records that had waited were delivered"
            )
            self._lasted = 0.0
        if self._news and now - self._drops_told >= _AGAIN:
            self.tell_drops()

    def drop(self, dropped: Dropped) -> None:
        """Takes in that records were dropped, which is reported soon, and at the end."""
        with self._lock:
            for kept in (self._dropped, self._news):
                known = kept.get(dropped.reason)
                kept[dropped.reason] = known + dropped if known else dropped

    def tell_drops(self) -> None:
        """Reports the dropped records that have not been reported yet."""
        with self._lock:
            news, self._news, self._drops_told = self._news, {}, self._clock()
        for dropped in news.values():
            self._tell(str(dropped))

    def dropped(self) -> list[Dropped]:
        """All dropped records, by reason."""
        with self._lock:
            return list(self._dropped.values())


@contextmanager
def watched(outage: Outage, standing: Callable[[], Standing], every: float = 0.5) -> Iterator[None]:
    """Context manager that updates an outage with the state of a writer, also while nobody writes."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            outage.update(standing())

    thread = threading.Thread(target=watch, daemon=True, name="outage")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        outage.update(standing())
        outage.tell_drops()
