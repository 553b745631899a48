"""The alarm budget: what was promised, and how much of what was told operators have called a false alarm."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dashboards.console.search import Document
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import Settings

SPAN = 28 * 86_400_000
"""How far back alarms and incidents are counted, milliseconds."""

FALSE, RIGHT = "false_alarm", "true"
_LOGS = "logs"


@dataclass(frozen=True)
class Promises:
    """The settings that promise how few false alarms there are.

    Attributes:
        false_pages: False incidents a week, for the site (`incidents.false_pages`).
        false_alarms: False alarms a series and month (`detector.false_alarms`).
    """

    false_pages: float
    false_alarms: float

    @classmethod
    def of(cls, settings: Settings) -> Promises | None:
        """What some settings promise; ``None`` where nothing is stored, as where own jobs run."""
        if not settings.elasticsearch.url:
            return None
        return cls(settings.incidents.false_pages, settings.detector.false_alarms)


def said_last(labels: Iterable[Document]) -> list[Document]:
    """The last label on each machine, metric and onset, by the event time at which it was given; the newest first.

    >>> on = {"host.name": "a", "metric": "m", "event.start": 1}
    >>> given = [on | {"event.created": 9, "verdict": "true"}, on | {"event.created": 7, "verdict": "false_alarm"}]
    >>> [each["verdict"] for each in said_last(given)]
    ['true']
    """
    newest = {(each["host.name"], each["metric"], each["event.start"]): each for each in sorted(labels, key=given)}
    return sorted(newest.values(), key=given, reverse=True)


def given(label: Document) -> int:
    """The event time at which a label was given, epoch milliseconds; see `pipelines.contracts.records.label`."""
    return int(label.get("event.created") or label.get("event.end") or label["event.start"])


class Labelled:
    """Says of incidents what operators have said of them.

    Args:
        labels: The labels, see `said_last`.
        now: The present, epoch milliseconds.
    """

    def __init__(self, labels: Iterable[Document], now: int) -> None:
        self._of: Mapping[tuple[str, str | None], list[Document]] = defaultdict(list)
        self._now = now
        for each in labels:
            for metric in (each["metric"], None):
                self._of[each["host.name"], metric].append(each)

    def verdicts(self, incident: Document) -> set[str]:
        """The last verdict on each of its series that has a label, as a set.

        A label is on a series of an incident if its time meets that in which the series was novel there, or if it is
        on the machine as a whole. Of an incident of an earlier version, which lists no series, machines stand for them.
        """
        found = (self._last(*each) for each in _series(incident, self._now))
        return {each["verdict"] for each in found if each is not None}

    def _last(self, entity: str, metric: str | None, start: int, end: int) -> Document | None:
        names = {metric, JOINED} if metric else {None}
        on = [each for name in names for each in self._of.get((entity, name), ())]
        met = [
            each
            for each in on
            if each["event.start"] <= end and (each.get("event.end") or each["event.start"]) >= start
        ]
        return max(met, key=given, default=None)


def counts(verdicts: Sequence[set[str]]) -> dict[str, int]:
    """How many incidents are ``labelled``, and how many of them are ``false``.

    One is false if a series of it was called a false alarm, and no other series was called right.

    >>> counts([{"false_alarm"}, {"false_alarm", "true"}, {"expected_change"}, set()])
    {'labelled': 3, 'false': 1}
    """
    false = sum(FALSE in each and RIGHT not in each for each in verdicts)
    return {"labelled": sum(map(bool, verdicts)), "false": false}


def alarms(labels: Iterable[Document], since: int, now: int) -> dict[str, int]:
    """How many alarms of single metrics since a time are ``labelled``, how many ``false``, on how many ``series``.

    Logs and machines as a whole are left out: `detector.false_alarms` promises nothing of them.
    """
    some = [each for each in labels if each["metric"] not in (JOINED, _LOGS) and since <= each["event.start"] <= now]
    false = [each for each in some if each["verdict"] == FALSE]
    series = {(each["host.name"], each["metric"]) for each in false}
    return {"labelled": len(some), "false": len(false), "series": len(series)}


def _series(incident: Document, now: int) -> Iterator[tuple[str, str | None, int, int]]:
    """Machine, metric (or ``None``), first and last instant of what an incident lists."""
    over = incident.get("event.end") or now
    for each in incident.get("series") or incident.get("machines") or ():
        yield each["entity"], each.get("metric"), each["since"], each.get("end") or over
