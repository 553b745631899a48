"""The sentences of a comparison, for the terminal and for the page."""

from __future__ import annotations

from itertools import starmap

from engine.spec.duration import iso
from pipelines.contracts.records.severity import SEVERITIES
from pipelines.evaluation.comparison.comparison import Comparison
from pipelines.evaluation.comparison.incidents import Incidents
from pipelines.evaluation.comparison.messages import STATES, Listener

ONLY = 10
"""The most incidents of one version only that are named."""

_KINDS = {
    "anomaly": "anomaly",
    "state_change": "change of state",
    "new_normal": "new normal",
    "absence": "missing data",
    "exhaustion": "full soon",
    "outlier": "unlike its peers",
}


def called(kind: str) -> str:
    """The words for a kind of alarm."""
    return _KINDS.get(kind, kind)


def figure(value: object) -> str:
    """A figure of a table as text; a dash stands for one that does not exist.

    >>> figure(None), figure(0.123456), figure(1200), figure("cpu"), figure(1039.6), figure(0.00001)
    ('–', '0.123', '1,200', 'cpu', '1,040', '0.00001')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{float(f'{value:.3g}'):.9f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


def incidents(comparison: Comparison) -> tuple[str, list[list[object]], list[str]]:
    """The incidents of both: in a sentence; as rows of a table with a figure for each version; those of one only."""
    if comparison.incidents is None:
        return "The incidents of both versions are not known, so only their alarms are compared.", [], []
    names, both = [version.name for version in comparison.versions], comparison.incidents
    rows: list[list[object]] = [["incidents", *(len(side.last) for side in both)]]
    rows += [
        [f"of them {severity}", *(side.severities.get(severity, 0) for side in both)]
        for severity in reversed(SEVERITIES)
        if any(severity in side.severities for side in both)
    ]
    largest = [side.largest for side in both]
    rows += [
        ["machines of the largest", *(side and side.machine_count for side in largest)],
        ["series of the largest", *(side and side.series_count for side in largest)],
    ]
    rows += [[f"messages{_whom(who)}", *(_messages(side, who) for side in both)] for who in both[0].messages]
    only = [
        f"Only {name}, {iso(one.start)}, {one.severity}, {_count(one.machine_count, 'machine')}: {one.message}"
        for name, side in zip(names, both, strict=True)
        for one in sorted(side.only, key=lambda one: (-one.machine_count, one.start))[:ONLY]
    ]
    only += [
        f"{len(side.only) - ONLY:,} more are of {name} only."
        for name, side in zip(names, both, strict=True)
        if len(side.only) > ONLY
    ]
    return "; ".join(starmap(_in_short, zip(names, both, strict=True))) + ".", rows, only


def _in_short(name: str, its: Incidents) -> str:
    """What operators would get of a version."""
    largest = f" (the largest of {_count(its.largest.machine_count, 'machine')})" if its.largest else ""
    messages = ", ".join(f"{_count(counts.total(), 'message')}{_whom(who)}" for who, counts in its.messages.items())
    return f"{name}: {_count(len(its.last), 'incident')}{largest}, {messages}"


def _whom(who: Listener) -> str:
    return f" to {who.name}" if who.name else ""


def _messages(its: Incidents, who: Listener) -> str:
    told = its.messages[who]
    kinds = ", ".join(f"{told[state]:,} {word}" for state, word in STATES.items() if told[state])
    return f"{told.total():,}" + (f" ({kinds})" if kinds else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def headline(comparison: Comparison) -> str:
    """What the comparison has found, in one or two sentences."""
    (one, two), outcomes, agreed = (
        (version.name for version in comparison.versions),
        comparison.outcomes(),
        comparison.agreement,
    )
    if comparison.times.start is None:
        return f"There is no event time that both {one} and {two} have judged, so nothing can be compared."
    begin = ""
    if agreed.alike is not None:
        share = f"{_percent(agreed.alike)} of {agreed.windows:,} windows"
        begin = f"{one} and {two} agree on {share} whether there is an alarm. "
    total = sum(outcomes.values())
    if not total:
        return f"{begin}Neither raised an alarm."
    same = outcomes["same"] + outcomes["moved"]
    return (
        f"{begin}Of {total:,} alarms, {two} raises {outcomes['new']:,} that {one} does not, and lacks "
        f"{outcomes['gone']:,} of {one}; {outcomes['changed']:,} have another kind, and {same:,} are the same "
        f"({outcomes['moved']:,} of them on other windows)."
    )


def compared(comparison: Comparison) -> list[str]:
    """What is compared, and what is not."""
    names, times, agreed = [version.name for version in comparison.versions], comparison.times, comparison.agreement
    sentences = _settings(comparison)
    if times.start is not None and times.end is not None:
        sentences.append(
            f"Only event times that both have judged are compared: {times.series:,} series, from {iso(times.start)} to "
            f"{iso(times.end)} at most; of each series the time that both have judged."
        )
    for name, left_out, alone in zip(names, times.left_out, times.alone, strict=True):
        if left_out:
            sentences.append(f"{left_out:,} windows that {name} has judged lie outside of these times.")
        if alone:
            sentences.append(f"{alone:,} series were judged by {name} only.")
    if some := [name for name, sparse in zip(names, times.sparse, strict=True) if sparse]:
        sentences.append(
            f"No verdicts on quiet windows are stored of {' and '.join(some)}, but for those around incidents "
            "(detector.emit). A window without a verdict counts as one without an alarm; the time of such a version is "
            "that from its first to its last verdict, and series without any verdict are not counted. To compare all "
            'windows, replay with detector.emit = "all".'
        )
    for name, alone in zip(names, agreed.alone, strict=True):
        if alone:
            sentences.append(f"{alone:,} windows within these times have a verdict of {name} only.")
    if agreed.same_kind is not None:
        which = " that have two verdicts" if any(times.sparse) else ""
        sentences.append(f"On {_percent(agreed.same_kind)} of the windows{which} the verdicts have the same kind.")
    if agreed.kappa is not None:
        sentences.append(
            f"Cohen's kappa of alarm or no alarm is {agreed.kappa:.2f}: 1 is full agreement, 0 what chance would give."
        )
    if not agreed.windows and times.start is not None:
        sentences.append("The versions have no window in common, so only their alarms are compared.")
    return sentences


def _settings(comparison: Comparison) -> list[str]:
    """In which settings the versions differ; empty if in none."""
    names, (one, two) = [version.name for version in comparison.versions], comparison.settings()
    differences = []
    for setting in sorted(one | two):
        values = [f"{its[setting]!r} in {name}" for name, its in zip(names, (one, two), strict=True) if setting in its]
        differences.append(f"{setting} is {' and '.join(values)}")
    return [f"The settings differ: {'; '.join(differences)}."] if differences else []


def quality(comparison: Comparison) -> tuple[list[list[object]], list[str]]:
    """The rows of a table with a figure for each version, and notes below it."""
    rates: list[object] = ["alarms for each series and month", *comparison.alarm_rates]
    if comparison.accuracy is None:
        note = (
            "There are no labels and no ground truth of this time, so precision and recall are not known. "
            "`newnormal label` writes labels; --labels reads them from a file."
        )
        return [rates], [note]
    one, two, higher = comparison.accuracy
    rows: list[list[object]] = [
        ["labelled times in which something was wrong", one.spans, two.spans],
        ["recall: share of them with an alarm", one.recall, two.recall],
        ["precision: share of alarms that a label explains", one.precision, two.precision],
        ["false alarms for each series and month", one.false_alarms, two.false_alarms],
        ["windows from the start to the first alarm, median", one.delay, two.delay],
        ["alarms that operators called false", one.refuted, two.refuted],
        rates,
    ]
    notes = ["An alarm that no label explains counts as false, so these figures need labels of all that was wrong."]
    if higher is not None:
        names = [version.name for version in comparison.versions]
        notes.append(
            f"The recall of {names[1]} is higher by {higher.mean:+.3f} (95 % interval {higher.low:+.3f} to "
            f"{higher.high:+.3f}, bootstrap over the labelled times)."
        )
    return rows, notes


def _percent(share: float) -> str:
    """A share in percent; only exactly all is 100 %.

    >>> _percent(0.99999), _percent(1.0), _percent(0.5)
    ('99.99 %', '100 %', '50.00 %')
    """
    return "100 %" if share == 1 else f"{min(share * 100, 99.99):.2f} %"
