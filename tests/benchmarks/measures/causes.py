"""Whether incidents name where recorded faults began, and whether what they say is 60 % likely is so in 60 of 100."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from pipelines.contracts.records import Incident, Placement
from pipelines.contracts.settings import Settings
from pipelines.jobs.detectors.metrics.detection import Detection
from pipelines.jobs.detectors.metrics.state import DetectionState
from pipelines.jobs.incidents.episode import Episode
from pipelines.jobs.incidents.grouping import GroupedIncident, Site, incidents
from pipelines.jobs.incidents.job import DEFAULT_SITE, rules
from pipelines.jobs.incidents.topology import Topology
from tests.benchmarks.measures.faults import Fault, Recording
from tests.benchmarks.measures.news import NEWS, episodes_of, news_of

BOUNDS = (0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 1.0)
"""Bounds of the shares that are compared with how often they are right."""

_WARM = 86_400_000
"""So many milliseconds of a history are learned from, before it is asked what it tells."""


@dataclass(frozen=True)
class Answer:
    """What was told of a fault, or, in quiet times, of none.

    Attributes:
        fault: The fault; ``None`` if nothing was wrong.
        incident: The most severe incident that had novelties then; ``None`` if there was none.
        rankings: What simple rankings of all machines with novelties then say, by name of the ranking.
    """

    fault: Fault | None
    incident: Incident | None
    rankings: Mapping[str, Sequence[str]]

    @property
    def named(self) -> list[str]:
        """The machines that the incident names, the most likely first."""
        return [each.entity for each in self.incident.candidates] if self.incident else []

    @property
    def shares(self) -> list[tuple[float, bool]]:
        """Each share that was said, and whether it was right; the last one is that of none of its machines."""
        if self.incident is None:
            return []
        cause = self.fault.cause if self.fault else None
        said = [(each.share, each.entity == cause) for each in self.incident.candidates]
        return [*said, (self.incident.unknown_share or 0.0, all(m.entity != cause for m in self.incident.machines))]

    @property
    def none_first(self) -> bool:
        """Whether it is said to be likelier that it began at none of its machines than at any one of them."""
        said = [share for share, _ in self.shares]
        return bool(said) and said[-1] > max(said[:-1])


def answers(recording: Recording, settings: Settings) -> Iterator[Answer]:
    """Plays a recording through the detector and the incidents as shipped, in the times that were recorded.

    The history is judged once; each fault with values of its own is then judged by a copy of what was learned.
    """
    detection = Detection(settings.detector)
    history, state = _judged(detection, detection.new_state(), recording.history, recording.step)
    kept = state.to_tables()
    last = int(recording.history["time"].to_numpy().max())
    if recording.quiet:
        first = int(recording.history["time"].to_numpy().min()) + _WARM
        for found in _told(episodes_of(news_of(history, DEFAULT_SITE)), recording, settings, last):
            if found.incident.opened > first:
                yield Answer(None, found.incident, {})
    for fault in recording.faults:
        verdicts = history
        if fault.values is not None:
            own, _ = _judged(detection, detection.from_tables(kept), fault.values, recording.step)
            verdicts = pl.concat([history, own])
        known = [e for e in episodes_of(news_of(verdicts, DEFAULT_SITE)) if e.reported <= fault.until]
        during = [e for e in known if e.reported > fault.at - recording.step]
        told = [
            each
            for each in _told(known, recording, settings, fault.until)
            if any(e.reported > fault.at - recording.step for e in each.episodes)
        ]
        worst = max((each.incident for each in told), key=lambda i: (i.severity_score, i.series_count), default=None)
        yield Answer(fault, worst, _rankings(during, recording.places))


def hits(answers: Sequence[Answer], most: Sequence[int] = (1, 3, 5)) -> dict[str, list[float]]:
    """For incidents and each simple ranking: of which share of the faults the cause is among the first machines."""
    faults = [each for each in answers if each.fault is not None]
    lists = {"incidents": [each.named for each in faults]}
    for name in faults[0].rankings if faults else ():
        lists[name] = [list(each.rankings[name]) for each in faults]
    return {
        name: [
            sum(a.fault is not None and a.fault.cause in named[:n] for a, named in zip(faults, some, strict=True))
            / len(faults)
            for n in most
        ]
        for name, some in lists.items()
    }


def calibration(answers: Iterable[Answer]) -> list[tuple[str, int, float, float]]:
    """For shares between two bounds: the bounds, how many were said, their mean, and how many of them were right.

    >>> calibration([])
    []
    """
    said = [each for answer in answers for each in answer.shares]
    rows = []
    for low, high in pairwise(BOUNDS):
        some = [each for each in said if low <= each[0] < high or each[0] == high == BOUNDS[-1]]
        if some:
            mean, right = (sum(values) / len(some) for values in zip(*some, strict=True))
            rows.append((f"{low:.0%} to {high:.0%}", len(some), mean, right))
    return rows


def _judged(
    detection: Detection, state: DetectionState, values: pl.DataFrame, step: int
) -> tuple[pl.DataFrame, DetectionState]:
    """The news on values that arrive row by row, and the state after them."""
    made = []
    for (time,), rows in values.sort("time", maintain_order=True).group_by("time", maintain_order=True):
        windows = rows.select("entity", "metric", "value", window_start=pl.col("time") - step, window_end="time")
        verdicts, state = detection.process(windows, state, now=int(str(time)))
        made.append(verdicts.filter(NEWS))
    return pl.concat(made), state


def _told(known: Iterable[Episode], recording: Recording, settings: Settings, now: int) -> list[GroupedIncident]:
    site = Site(DEFAULT_SITE, Topology(recording.places), {}, {})
    return [each for each in incidents(known, site, rules(settings.incidents), now) if each.notable]


def _rankings(during: Sequence[Episode], places: Mapping[str, Placement]) -> dict[str, list[str]]:
    """Simple rankings of the machines with novelties at the time of a fault.

    *Deepest*: those first that depend on no other one of them, the strongest first. *Earliest*: by the onset, of those
    that began together the strongest first.
    """
    score: dict[str, float] = {}
    since: dict[str, int] = {}
    for e in during:
        score[e.entity] = max(score.get(e.entity, 0.0), e.score)
        since[e.entity] = min(since.get(e.entity, e.since), e.since)
    above = {name: any(n in score for n in places[name].above) if name in places else False for name in score}
    return {
        "deepest, then strongest": sorted(score, key=lambda name: (above[name], -score[name], name)),
        "earliest, then strongest": sorted(score, key=lambda name: (since[name], -score[name], name)),
    }
