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
        false_pages: False incidents per week, for the site (`incidents.false_pages`).
        false_alarms: False alarms per series and month (`detector.false_alarms`).
    """

    false_pages: float
    false_alarms: float

    @classmethod
    def of(cls, settings: Settings) -> Promises | None:
        """What some settings promise; ``None`` where nothing is stored, as where own jobs run."""
        if not settings.elasticsearch.url:
            return None
        return cls(settings.incidents.false_pages, settings.detector.false_alarms)


def last_labels(labels: Iterable[Document]) -> list[Document]:
    """The last label on each machine, metric and onset, by the event time at which it was given; the newest first.

    >>> on = {"host.name": "a", "metric": "m", "event.start": 1}
    >>> labels = [on | {"event.created": 9, "verdict": "true"}, on | {"event.created": 7, "verdict": "false_alarm"}]
    >>> [label["verdict"] for label in last_labels(labels)]
    ['true']
    """
    newest = {(it["host.name"], it["metric"], it["event.start"]): it for it in sorted(labels, key=created)}
    return sorted(newest.values(), key=created, reverse=True)


def created(label: Document) -> int:
    """The event time at which a label was given, epoch milliseconds; see `pipelines.contracts.records.label`."""
    return int(label.get("event.created") or label.get("event.end") or label["event.start"])


class Labelled:
    """Says of incidents what operators have said of them.

    Args:
        labels: The labels, see `last_labels`.
        now: The present, epoch milliseconds.
    """

    def __init__(self, labels: Iterable[Document], now: int) -> None:
        self._of: Mapping[tuple[str, str | None], list[Document]] = defaultdict(list)
        self._now = now
        for label in labels:
            for metric in (label["metric"], None):
                self._of[label["host.name"], metric].append(label)

    def verdicts(self, incident: Document) -> set[str]:
        """The last verdict on each of its series that has a label, as a set.

        A label is on a series of an incident if its time meets that in which the series was novel there, or if it is
        on the machine as a whole. Of an incident of an earlier version, which lists no series, machines stand for them.
        """
        labels = (self._last(*series) for series in _series(incident, self._now))
        return {label["verdict"] for label in labels if label is not None}

    def _last(self, entity: str, metric: str | None, start: int, end: int) -> Document | None:
        names = {metric, JOINED} if metric else {None}
        on = [label for name in names for label in self._of.get((entity, name), ())]
        met = [
            label
            for label in on
            if label["event.start"] <= end and (label.get("event.end") or label["event.start"]) >= start
        ]
        return max(met, key=created, default=None)


def counts(verdicts: Sequence[set[str]]) -> dict[str, int]:
    """How many incidents are ``labelled``, and how many of them are ``false``.

    One is false if a series of it was called a false alarm, and no other series was called right.

    >>> counts([{"false_alarm"}, {"false_alarm", "true"}, {"expected_change"}, set()])
    {'labelled': 3, 'false': 1}
    """
    false = sum(FALSE in said and RIGHT not in said for said in verdicts)
    return {"labelled": sum(map(bool, verdicts)), "false": false}


def alarms(labels: Iterable[Document], since: int, now: int) -> dict[str, int]:
    """How many alarms of single metrics since a time are ``labelled``, how many ``false``, on how many ``series``.

    Logs and machines as a whole are left out: `detector.false_alarms` promises nothing of them.
    """
    recent = [it for it in labels if it["metric"] not in (JOINED, _LOGS) and since <= it["event.start"] <= now]
    false = [label for label in recent if label["verdict"] == FALSE]
    series = {(label["host.name"], label["metric"]) for label in false}
    return {"labelled": len(recent), "false": len(false), "series": len(series)}


def _series(incident: Document, now: int) -> Iterator[tuple[str, str | None, int, int]]:
    """Machine, metric (or ``None``), first and last instant of what an incident lists."""
    over = incident.get("event.end") or now
    for listed in incident.get("series") or incident.get("machines") or ():
        yield listed["entity"], listed.get("metric"), listed["since"], listed.get("end") or over
