"""Counts the news that was stored, by kind, and the series whose news is still open. Its caller must hold a lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pipelines.contracts.records.novelty import NEWS_KINDS
from pipelines.jobs.index.document import IndexedNews

OPENS = ("anomaly", "state_change", "absence")
"""Kinds of news that leave a series open, until news of another kind arrives or its incident closes."""


class NewsCounts:
    """Counts news since the process started. Open series of earlier runs are counted if `seed` was called.

    >>> counts = NewsCounts()
    >>> counts.take([IndexedNews("a", "cpu", "anomaly", 10), IndexedNews("b", "cpu", "absence", 10)])
    >>> counts.take([IndexedNews("a", "cpu", "recovered", 20)])
    >>> counts.stored["anomaly"], counts.open()
    (1, {'anomaly': 0, 'state_change': 0, 'absence': 1})
    >>> counts.take([IndexedNews("b", "cpu", "normal", 30, closes=True)])
    >>> counts.open()["absence"]
    0
    """

    def __init__(self) -> None:
        self.stored = dict.fromkeys(NEWS_KINDS, 0)
        self._newest: dict[tuple[str, str], tuple[int, str]] = {}

    def take(self, news: Iterable[IndexedNews]) -> None:
        """Adds news that was just stored."""
        for each in news:
            if each.kind in self.stored:
                self.stored[each.kind] += 1
            self._newer(each)

    def seed(self, news: Iterable[IndexedNews]) -> None:
        """Adds news that was stored before the start: it may leave series open, but is not counted as stored."""
        for each in news:
            self._newer(each)

    def open(self) -> dict[str, int]:
        """For each kind in `OPENS` the number of series whose newest news has this kind."""
        found = Counter(kind for _, kind in self._newest.values())
        return {kind: found[kind] for kind in OPENS}

    def _newer(self, news: IndexedNews) -> None:
        series = news.entity, news.metric
        time, _ = self._newest.get(series, (news.time - 1, ""))
        if news.time == time or (news.time > time and (news.closes or news.kind in self.stored)):
            self._newest[series] = news.time, "" if news.closes else news.kind
