"""The comparison of two versions as one value: what is compared, how far they agree, how they differ, who is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from engine.spec.duration import iso
from pipelines.contracts.records.novelty import JOINED
from pipelines.evaluation.bootstrap import Interval
from pipelines.evaluation.comparison.accuracy import Accuracy, accuracy
from pipelines.evaluation.comparison.agreement import Agreement, agreement
from pipelines.evaluation.comparison.alarms import OUTCOMES, counts, matched
from pipelines.evaluation.comparison.common import CommonTimes, common_times
from pipelines.evaluation.comparison.differences import instructive, reason
from pipelines.evaluation.comparison.incidents import History, Incidents, incidents
from pipelines.evaluation.comparison.messages import Listener
from pipelines.evaluation.truth import CALM, Span

GROUPS = {"kind": "kind", "metric": "metric", "entity": "machine"}
"""The columns by which alarms are counted, with the words for them."""

_DAY_MS, _MONTH_DAYS = 86_400_000, 30


@dataclass(frozen=True)
class JudgedBy:
    """A version and its verdicts.

    Args:
        name: Name of the version.
        verdicts: Its final verdicts, see `pipelines.evaluation.comparison.verdicts`.
        threshold: The setting ``detector.threshold`` of the version.
        settings: Its settings, by dotted name, as far as they are known; a comparison tells those that differ.
        emit: The setting ``detector.emit`` of the version.
        incidents: Its incidents with all their revisions; ``None``: not known.
    """

    name: str
    verdicts: pl.DataFrame
    threshold: float
    settings: dict[str, Any]
    emit: str = "all"
    incidents: tuple[History, ...] | None = None


@dataclass(frozen=True)
class Difference:
    """One of the most instructive differences.

    Attributes:
        alarm: The alarm, a row as `pipelines.evaluation.comparison.differences.instructive` returns them.
        reasons: Why each version judged so, in words.
    """

    alarm: dict[str, Any]
    reasons: tuple[str, str]


@dataclass(frozen=True)
class Comparison:
    """What a comparison has found.

    Attributes:
        versions: Both versions; their verdicts are restricted to the times that are compared.
        times: The times that are compared.
        incidents: The incidents of both within these times; ``None`` if those of one are not known, or no time is
            compared.
        agreement: How far the versions agree.
        alarms: All alarms, see `pipelines.evaluation.comparison.alarms.matched`.
        accuracy: The accuracy of both, and the difference of their recalls; ``None`` without labels.
        differences: The most instructive differences.
        alarm_rates: Alarms of both versions for each series and month of 30 days; ``None`` if no time is compared.
    """

    versions: tuple[JudgedBy, JudgedBy]
    times: CommonTimes
    incidents: tuple[Incidents, Incidents] | None
    agreement: Agreement
    alarms: pl.DataFrame
    accuracy: tuple[Accuracy, Accuracy, Interval | None] | None
    differences: tuple[Difference, ...]
    alarm_rates: tuple[float | None, float | None]

    def outcomes(self) -> dict[str, int]:
        """Number of alarms by outcome."""
        return {outcome: self.alarms.filter(pl.col("outcome") == outcome).height for outcome in OUTCOMES}

    def settings(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings of each version in which the other one differs, by dotted name."""
        one, two = (version.settings for version in self.versions)
        names = sorted(name for name in one | two if one.get(name) != two.get(name))
        kept = [{name: known[name] for name in names if name in known} for known in (one, two)]
        return kept[0], kept[1]

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        names = [version.name for version in self.versions]
        times, agreed = self.times, self.agreement

        def both(values: Iterable[Any]) -> dict[str, Any]:
            return dict(zip(names, values, strict=True))

        kinds = [{"first": one, "second": two, "windows": number} for (one, two), number in agreed.kinds.items()]
        accuracy = self.accuracy and both(map(asdict, self.accuracy[:2]))
        higher = self.accuracy[2] if self.accuracy else None
        return {
            "versions": names,
            "incidents": self.incidents and both(side.figures() for side in self.incidents),
            "settings": both(self.settings()),
            "compared": {
                "from": times.start and iso(times.start),
                "until": times.end and iso(times.end),
                "series": times.series,
                "windows": agreed.windows,
                "windows_of_one_version_only": both(agreed.alone),
                "series_of_one_version_only": both(times.alone),
                "windows_left_out": both(times.left_out),
                "stores_quiet_windows": both(not sparse for sparse in times.sparse),
            },
            "agreement": {
                "alarm_or_not": agreed.alike,
                "kind": agreed.same_kind,
                "cohens_kappa": agreed.kappa,
                "windows_by_kind": kinds,
            },
            "alarms": self.outcomes()
            | {f"by_{word}": counts(self.alarms, by).to_dicts() for by, word in GROUPS.items()},
            "alarms_per_series_month": both(self.alarm_rates),
            "accuracy": accuracy,
            "recall_difference": higher and asdict(higher),
            "differences": [_readable(difference, names) for difference in self.differences],
        }


def compare(
    first: JudgedBy,
    second: JudgedBy,
    spans: Sequence[Span] = (),
    start: int | None = None,
    end: int | None = None,
    listeners: Sequence[Listener] = (Listener(),),
) -> Comparison:
    """Compares two versions on the event times that both have judged.

    Args:
        first: The first version.
        second: The second version.
        spans: Labelled spans.
        start: No earlier window is compared, epoch milliseconds.
        end: No window that ends later is compared.
        listeners: Who would be told of incidents.
    """
    times = common_times(first.verdicts, second.verdicts, start, end, (first.emit, second.emit))
    one, two = times.verdicts
    alarms = matched(one, two, times.step)
    shown = []
    for alarm in instructive(alarms, one, two).to_dicts():
        inside = [
            reason(version.name, around(verdicts, alarm, 0), version.threshold, sparse=sparse)
            for version, verdicts, sparse in zip((first, second), (one, two), times.sparse, strict=True)
        ]
        shown.append(Difference(alarm, (inside[0], inside[1])))
    single = pl.col("metric") != JOINED
    months = _months(times.compared.filter(single))
    own = alarms.filter(single)
    raised = (own["kind0"].count(), own["kind1"].count())
    return Comparison(
        versions=(
            replace(first, verdicts=one),
            replace(second, verdicts=two),
        ),
        times=times,
        incidents=_incidents(first, second, listeners, times),
        agreement=agreement(one, two, times.sparse),
        alarms=alarms,
        accuracy=accuracy(one, two, spans, times) if spans and times.series else None,
        differences=tuple(shown),
        alarm_rates=(raised[0] / months, raised[1] / months) if months else (None, None),
    )


def _incidents(
    first: JudgedBy, second: JudgedBy, listeners: Sequence[Listener], times: CommonTimes
) -> tuple[Incidents, Incidents] | None:
    known = first.incidents, second.incidents
    if known[0] is None or known[1] is None or times.start is None or times.end is None:
        return None
    return incidents((known[0], known[1]), listeners, times.start, times.end, CALM * times.step)


def around(verdicts: pl.DataFrame, alarm: dict[str, Any], margin: int) -> pl.DataFrame:
    """The verdicts on the series of an alarm, in its time and ``margin`` milliseconds before and after it."""
    series = (pl.col("entity") == alarm["entity"]) & (pl.col("metric") == alarm["metric"])
    inside = (pl.col("window_end") > alarm["start"] - margin) & (pl.col("window_start") < alarm["end"] + margin)
    return verdicts.filter(series & inside)


def _months(windows: pl.DataFrame) -> float:
    """Judged time, summed over all series, in months of 30 days."""
    return float((windows["to"] - windows["from_"]).sum()) / (_DAY_MS * _MONTH_DAYS)


def _readable(difference: Difference, names: Sequence[str]) -> dict[str, Any]:
    alarm = difference.alarm
    scores = (alarm["highest0"], alarm["highest1"])
    return {
        "machine": alarm["entity"],
        "metric": alarm["metric"],
        "from": iso(alarm["start"]),
        "until": iso(alarm["end"]),
        "outcome": alarm["outcome"],
        "kinds": dict(zip(names, (alarm["kind0"], alarm["kind1"]), strict=True)),
        "highest_scores": dict(zip(names, scores, strict=True)),
        "reasons": dict(zip(names, difference.reasons, strict=True)),
    }
