"""Until when the detector has judged, by what a view has read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from engine.spec.duration import NEVER
from pipelines.contracts import topics
from pipelines.query.view.progress import Progress

Places = Mapping[tuple[str, int], Progress]
"""The progress of a view by topic, without namespace and version, and partition."""

_SETTLED = 2.0
"""Seconds after which the other messages of a transaction can be read, too: its end is written to one partition after
the other."""


def judged(places: Places, partitions: int) -> int:
    """End of the windows that the detector has judged on all partitions, epoch milliseconds; `NEVER`: not known.

    Args:
        places: The progress.
        partitions: The number of partitions of the view's part.
    """
    marks = [place.watermark for (topic, _), place in places.items() if topic == topics.NEWS]
    return min(marks) if len(marks) == partitions else NEVER


class Settled:
    """Says until when the view has all verdicts and beliefs: each topic is read at its own pace.

    What the detector has judged is taken once two seconds have passed, and since then the view was either at the end
    of both topics, or had read a later message of each.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._until = clock, NEVER
        self._waits: tuple[int, int, float] | None = None

    def until(self, places: Places, partitions: int) -> int:
        """End of the windows of which everything is read, epoch milliseconds; `NEVER`: not known yet."""
        now = self._clock()
        mark = judged(places, partitions)
        if self._waits is None and mark > self._until:
            written = max(place.written for (topic, _), place in places.items() if topic == topics.NEWS)
            self._waits = mark, written, now
        if self._waits and now >= self._waits[2] + _SETTLED:
            told = [place for (topic, _), place in places.items() if topic in (topics.STATE, topics.NOVELTIES)]
            if all(not place.behind or place.written > self._waits[1] for place in told):
                self._until, self._waits = self._waits[0], None
        return self._until
