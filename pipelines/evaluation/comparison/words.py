"""The sentences of a comparison, for the terminal and for the page."""

from __future__ import annotations

from engine.spec.duration import iso
from pipelines.evaluation.comparison.comparison import Comparison

_KINDS = {
    "anomaly": "anomaly",
    "state_change": "change of state",
    "new_normal": "new normal",
    "absence": "missing data",
}


def called(kind: str) -> str:
    """The words for a kind of alarm."""
    return _KINDS.get(kind, kind)


def figure(value: object) -> str:
    """A figure of a table as text; a dash stands for one that does not exist.

    >>> figure(None), figure(0.123456), figure(1200), figure("cpu")
    ('–', '0.123', '1,200', 'cpu')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def headline(found: Comparison) -> str:
    """What the comparison has found, in one or two sentences."""
    (one, two), outcomes, agreed = (version.name for version in found.versions), found.outcomes(), found.agreement
    if found.times.start is None:
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


def compared(found: Comparison) -> list[str]:
    """What is compared, and what is not."""
    names, times, agreed = [version.name for version in found.versions], found.times, found.agreement
    sentences = []
    for version in found.versions:
        settings = ", ".join(f"{name} = {value!r}" for name, value in sorted(version.settings.items()))
        if settings:
            sentences.append(f"{version.name} differs from the settings of the pipeline: {settings}.")
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


def quality(found: Comparison) -> tuple[list[list[object]], list[str]]:
    """The rows of a table with a figure for each version, and notes below it."""
    rates: list[object] = ["alarms for each series and month", *found.alarm_rates]
    if found.accuracy is None:
        note = (
            "There are no labels and no ground truth of this time, so precision and recall are not known. "
            "`newnormal label` writes labels; --labels reads them from a file."
        )
        return [rates], [note]
    one, two, higher = found.accuracy
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
        names = [version.name for version in found.versions]
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
