"""An episode: the time in which one series was novel without a break. Incidents are groups of episodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, log

from pipelines.contracts.records.novelty import JOINED

LOGS = "logs"
"""The metric name of verdicts on a machine's log."""

_ERROR = 3
"""The syslog severity of errors; worse ones have lower numbers (RFC 5424)."""

SILENCE = "silence"
"""What machines that have sent nothing show alike."""

STRONG = 50.0
"""A novelty with less evidence than this score, half of the scale, links no machines and takes in no later ones."""

_CLOCK, _USUAL, _SHORTEST, _LONGEST = 0.25, 300_000.0, 60_000.0, 1_800_000.0
"""What each factor e of values per month counts in evidence, and for which clocks: see `models.series.alarm`."""

_LEAST = 0.01
"""Least evidence of a novelty: shares of causes are shares of all evidence."""

MEASURE = 12.0
"""A band learned from so many values is a measure for a deviation of one width; see `Episode.beyond`."""

MOST_WIDTHS = 1e12
"""A deviation of more widths of the band counts as this."""


@dataclass(frozen=True, slots=True)
class Episode:
    """The novelties of one series with one onset.

    Attributes:
        entity: The machine.
        metric: The metric.
        since: The onset, epoch milliseconds.
        reported: End of the first window that was novel, epoch milliseconds. Later verdicts never change it.
        until: End of the last window with news, epoch milliseconds.
        closed: End of the window that ended the episode; ``None`` while it lasts.
        score: Highest score of its novelties.
        absent: True if the series has stopped.
        template: For logs: the log template of the first novelty that has one.
        example: For logs: a line of that template.
        level: For logs: the syslog severity of that template.
        resumed: Start of the window that ended the episode, epoch milliseconds; ``None`` while it lasts.
        kind: Kind of its worst verdict, that with the largest deviation in widths of its band, then with the highest
            score; ``None`` if it was kept by an earlier version.
        worst: End of the worst verdict's window, epoch milliseconds.
        metric_kind: What kind of quantity the metric is.
        actual: The value that the worst verdict judged.
        typical: The value that was expected.
        lower: Lower bound of the band in which it was expected.
        upper: Upper bound of that band.
        values: How many values the band was learned from; ``None`` if that is not known.
        clock: Usual milliseconds between two values of the series; ``None`` if that is not known.
        metrics: How many metrics of the machine were judged with the worst verdict; ``None`` if that is not known.
        full_earliest: When the series is full at the earliest, as was told last, epoch milliseconds; ``None``: it was
            not told.
        full_latest: The same at the latest.
        foretold: End of the window with which that was told, epoch milliseconds.
    """

    entity: str
    metric: str
    since: int
    reported: int
    until: int
    closed: int | None
    score: float
    absent: bool = False
    template: str | None = None
    example: str | None = None
    level: int | None = None
    resumed: int | None = None
    kind: str | None = None
    worst: int | None = None
    metric_kind: str | None = None
    actual: float | None = None
    typical: float | None = None
    lower: float | None = None
    upper: float | None = None
    values: float | None = None
    clock: float | None = None
    metrics: float | None = None
    full_earliest: int | None = None
    full_latest: int | None = None
    foretold: int | None = None

    @property
    def order(self) -> tuple[int, int, str, str]:
        """Order of reports: the first episode of an incident gives it its id."""
        return self.reported, self.since, self.entity, self.metric

    def end(self, now: int, longest: int) -> int | None:
        """When it ended, epoch milliseconds; ``None`` if it lasts.

        Args:
            now: The watermark, epoch milliseconds.
            longest: Milliseconds without news after which an episode is taken to be over.
        """
        if self.closed is not None:
            return max(self.closed, self.since)
        return self.until + longest if self.until + longest <= now else None

    @property
    def silent(self) -> bool:
        """True if the whole machine has sent nothing."""
        return self.absent and self.metric == JOINED

    @property
    def error(self) -> bool:
        """True for lines of a log that are errors or worse."""
        return self.metric == LOGS and self.level is not None and self.level <= _ERROR

    @property
    def shows(self) -> str | None:
        """What is compared with other machines: the metric, for logs with the template, for a silent machine `SILENCE`.

        ``None`` if a machine is unusual as a whole, which says nothing of what it has in common with others.
        """
        if self.metric == JOINED:
            return SILENCE if self.absent else None
        return f"{LOGS} {self.template or ''}" if self.metric == LOGS else self.metric

    @property
    def evidence(self) -> float:
        """The evidence of its worst verdict, without a bound: 1 of what comes by chance once in a month of the series.

        That is a score of 50 for a series with a value every five minutes, or of which the clock is not known; 58 for a
        value a minute, which by chance has a high score five times as often, and 36 for one every half an hour
        (`models.series.alarm`). Logs, machines as a whole and what has stopped have 1 at 50.

        >>> [round(Episode("a", "m", 0, 1, 1, None, score).evidence, 2) for score in (0, 50, 69, 75)]
        [0.01, 1.0, 2.23, 3.0]
        >>> minute, half_hour = (Episode("a", "m", 0, 1, 1, None, 58.4, clock=n * 60_000.0) for n in (1, 30))
        >>> round(minute.evidence, 2), round(half_hour.evidence, 2)
        (1.0, 1.85)
        """
        judged = self.clock if self.metric not in (JOINED, LOGS) and not self.absent else None
        clock = min(max(judged, _SHORTEST), _LONGEST) if judged else _USUAL
        return max(self.score / max(100.0 - self.score, 0.01) - _CLOCK * log(_USUAL / clock), _LEAST)

    def evidence_among(self, novel: int) -> float:
        """The evidence, as that of a machine of `metrics` series of which ``novel`` are novel together.

        >>> twelve = Episode("a", "m", 0, 1, 1, None, 75.0, metrics=12.0)
        >>> [round(twelve.evidence_among(novel), 2) for novel in (1, 4, 12)]
        [2.38, 2.73, 3.0]
        """
        return max(self.evidence - _CLOCK * log(max((self.metrics or 1.0) / max(novel, 1), 1.0)), _LEAST)

    @property
    def beyond(self) -> float:
        """How far the worst value lies outside its band, in widths of the band; 0 inside it, or if there is none.

        A band that was learned from n values is a measure for up to (n / 12)² of its widths: for 1 after 12 values, for
        25 after 60. A band of nearly no width, as that of a machine on which nothing has happened yet, would make
        anything huge.

        >>> from dataclasses import replace
        >>> jump = Episode("a", "m", 0, 1, 1, None, 69.0, actual=17.0, lower=-0.001, upper=0.001)
        >>> [round(replace(jump, values=n).beyond) for n in (8, 60, 100_000, None)]
        [0, 25, 8500, 8500]
        """
        if self.actual is None or self.lower is None or self.upper is None or self.upper <= self.lower:
            return 0.0
        widths = max(self.actual - self.upper, self.lower - self.actual, 0.0) / (self.upper - self.lower)
        return min(widths, MOST_WIDTHS if self.values is None else (self.values / MEASURE) ** 2, MOST_WIDTHS)


class Comings:
    """Counts how often each series came: once more with each episode that begins after those before it are over.

    An episode that only goes on where another ended, as its onset was dated anew, is none of its own.

    >>> comings = Comings()
    >>> for since, closed in ((0, 10), (10, 20), (30, None)):
    ...     comings.add(Episode("a", "m", since, since + 1, since + 1, closed, 60.0))
    >>> comings.most
    2
    """

    def __init__(self) -> None:
        self.most = 1
        self._over: dict[tuple[str, str], float] = {}
        self._came: dict[tuple[str, str], int] = {}

    def add(self, episode: Episode) -> None:
        """Takes the next episode of some series."""
        key = (episode.entity, episode.metric)
        over = self._over.get(key, -inf)
        self._came[key] = self._came.get(key, 0) + (episode.since > over)
        self._over[key] = max(over, inf if episode.closed is None else episode.closed)
        self.most = max(self.most, self._came[key])


def times(episodes: Iterable[Episode]) -> int:
    """How often the series came that came most often."""
    comings = Comings()
    for episode in sorted(episodes, key=lambda e: (e.since, e.order)):
        comings.add(episode)
    return comings.most
