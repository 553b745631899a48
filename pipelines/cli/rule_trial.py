"""Says in a few lines what a rule would have removed and added."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from engine.spec.duration import iso
from pipelines.contracts.records import Rule
from pipelines.evaluation.rule_proposals.proposals import Proposals
from pipelines.evaluation.rule_trial.trial import Trial, by_severity


def trial_lines(trial: Trial) -> Iterator[str]:
    """What a rule would have done: what is stored of the time, counts, what cannot be said, and examples."""
    yield f"from {iso(trial.start)} until {iso(trial.end)}"
    yield from counts(trial)
    changed = trial.count("gone") + trial.count("new")
    if trial.examples:
        yield f"examples, {len(trial.examples)} of {changed}:"
    for each in trial.examples:
        yield "  " + _example(each)


def counts(trial: Trial) -> Iterator[str]:
    """The same without the examples and the time."""
    known = trial.stored
    if known.verdicts_from > trial.start:
        yield f"  verdicts are stored from {iso(known.verdicts_from)} on; nothing is known of the time before"
    if known.values_needed:
        yield "  " + _values(trial)
    before = trial.alarms.filter(trial.alarms["outcome"] != "new").height
    gone, new = trial.count("gone"), trial.count("new")
    yield f"removed: {gone} of {before} alarms ({_n(trial.windows[0], 'window')}){_listed(trial.severities('gone'))}"
    if gone:
        true, false = trial.count("gone", "true"), trial.count("gone", "false_alarm")
        rest = gone - true - false
        yield f"  by labels: {_n(true, 'true alarm')} lost, {_n(false, 'false alarm')} spared, {rest} without a label"
        lost, smaller = trial.incidents
        yield f"  incidents: {len(lost)} with all their series{_listed(by_severity(lost))}; {len(smaller)} in part"
    yield f"added: {_n(new, 'alarm')} ({_n(trial.windows[1], 'window')}){_listed(trial.severities('new'))}"
    if trial.undecided:
        which = f"{_n(trial.undecided, 'joined alarm')} of these machines (_machine)"
        yield f"not counted: {which}, which may be judged otherwise without what is removed"
    if trial.rule.skip_learning or trial.rule.weekend:
        yield "not counted: what follows from what the models would have learned otherwise; a replay says it"


def proposal_lines(proposals: Proposals) -> Iterator[str]:
    """What labels propose: for each rule what the alarms have in common, how it is added, and its trial."""
    yield f"alarms labelled false: {proposals.false}; labelled true: {proposals.true}"
    if not proposals.found:
        yield "no proposal: no three of the false alarms have something in common that sets them apart"
    for number, each in enumerate(proposals.found, 1):
        yield f"{number}. {each.words}"
        yield f"   {command(each.rule)}"
        yield from (f"   {line}" for line in trial_lines(each.trial))
    if not proposals.complete:
        yield "the search was cut short, so there may be better ones; --from with a later time looks at fewer alarms"


def command(rule: Rule) -> str:
    """The command line that adds a rule."""
    said = rule.model_dump(exclude_defaults=True, exclude={"id", "time", "note", "active", "start", "end"})
    words = ["newnormal", "rule", "add", rule.id]
    for name, value in said.items():
        option = "--" + name.replace("_", "-")
        words += [option] if value is True else [option, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _values(trial: Trial) -> str:
    """From when on quiet windows are known."""
    begin = trial.stored.values_from
    if begin is None:
        return "Kafka has no values of such windows, so only what the rule adds to stored verdicts is counted"
    if begin > trial.start:
        return f"values of quiet windows are in Kafka from {iso(begin)} on; what the rule adds before is not counted"
    return "values of quiet windows are those in Kafka"


def _n(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of}s"


def _listed(counts: dict[str, int]) -> str:
    return ": " + ", ".join(f"{number} {name}" for name, number in counts.items()) if counts else ""


def _example(each: dict[str, Any]) -> str:
    label = {"true": ", labelled true", "false_alarm": ", labelled a false alarm"}.get(each["label"], "")
    score = "" if each["score"] is None else f", score {each['score']:.0f}"
    values = "" if each["actual"] is None else f", value {each['actual']:g}"
    usual = "" if each["typical"] is None else f" (typical {each['typical']:g})"
    return (
        f"{each['outcome']}: {each['metric']} of {each['entity']} at {iso(each['from'])}{score}{values}{usual}{label}"
    )
