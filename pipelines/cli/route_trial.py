"""Says in a few lines whom incidents would have paged by other settings of notifications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.spec.duration import iso
from pipelines.cli.rule_trial import counted, listed
from pipelines.contracts.quantities.words import duration
from pipelines.evaluation.route_trial.trial import Paged, RouteTrial
from pipelines.evaluation.rule_trial.changes import by_severity

_WORDS = {
    "removed": "told nobody any more",
    "added": "told somebody, as not today",
    "others": "told other channels",
    "later": "told the same channels at another time",
}


def route_lines(trial: RouteTrial) -> Iterator[str]:
    """Whom incidents would have paged: what is stored of the time, counts, channels, examples."""
    yield f"from {iso(trial.start)} until {iso(trial.end)}: {counted(len(trial.paged), 'incident')}"
    if bare := trial.stored.bare:
        yield f"  of {bare} only the last revision is stored: they count as having been so from their beginning"
    for outcome, words in _WORDS.items():
        found = trial.of(outcome)
        yield f"{words}: {len(found)}{listed(by_severity(found))}"
        if found:
            true, false = len(trial.of(outcome, "true")), len(trial.of(outcome, "false_alarm"))
            yield f"  by labels: {true} true, {false} false, {len(found) - true - false} without a label"
    today, tried = trial.nobody(0), trial.nobody(1)
    yield f"nobody is told: {len(tried)}{listed(by_severity(tried))} (today {len(today)}{listed(by_severity(today))})"
    for name, (before, after) in sorted(trial.messages.items()):
        yield f"{name}: {counted(after, 'message')} (today {before})"
    examples = trial.examples
    if examples:
        changed = sum(each.outcome != "same" for each in trial.paged)
        yield f"examples, {len(examples)} of {changed}:"
    for each in examples:
        yield "  " + _example(each)


def _example(each: Paged) -> str:
    label = {"true": ", labelled true", "false_alarm": ", labelled a false alarm"}.get(each.label or "", "")
    it, (today, tried) = each.incident, each.channels
    what = (
        f"{it.severity} {it.id} at {iso(it.opened)}{label}: {_whom(tried, it.opened)}, today {_whom(today, it.opened)}"
    )
    return f"{what} ({it.message})"


def _whom(told: Mapping[str, int], opened: int) -> str:
    """Who is told, and how long after the beginning.

    >>> _whom({"pager": 5_000, "boss": 905_000}, 5_000), _whom({}, 0)
    ('pager, boss after 15 min', 'nobody')
    """
    ordered = sorted(told.items(), key=lambda each: (each[1], each[0]))
    return ", ".join(f"{name}{_after(at - opened)}" for name, at in ordered) or "nobody"


def _after(passed: int) -> str:
    return f" after {duration(passed)}" if passed >= 1000 else ""
