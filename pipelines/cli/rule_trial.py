"""Says in a few lines what a rule, labels or a budget would have removed and added."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from engine.spec.duration import iso
from pipelines.contracts.records import Rule
from pipelines.evaluation.label_trial import LabelTrial
from pipelines.evaluation.rule_proposals.proposals import Proposals
from pipelines.evaluation.rule_trial.changes import Changes, by_severity
from pipelines.evaluation.rule_trial.trial import Trial


def trial_lines(trial: Trial) -> Iterator[str]:
    """What a rule would have done: what is stored of the time, counts, what cannot be said, and examples."""
    yield f"from {iso(trial.start)} until {iso(trial.end)}"
    yield from counts(trial)
    yield from example_lines(trial)


def counts(trial: Trial) -> Iterator[str]:
    """The same without the examples and the time."""
    yield from _stored(trial)
    if trial.stored.values_needed:
        yield "  " + _values(trial)
    yield from change_lines(trial)
    if trial.undecided:
        which = f"{counted(trial.undecided, 'joined alarm')} of these machines (_machine)"
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


def label_lines(trial: LabelTrial) -> Iterator[str]:
    """What labels would have done, in the same way."""
    for label in trial.labels:
        yield f"label {label.verdict} for {label.metric} of {label.entity}, in effect from {iso(label.at)}"
    yield f"from {iso(trial.start)} until {iso(trial.end)}"
    yield from _stored(trial)
    yield from change_lines(trial)
    if trial.shortened:
        yield f"ended earlier: {counted(trial.shortened, 'alarm')}"
    if trial.undecided:
        later = counted(trial.undecided, "later alarm")
        yield f"not counted: {later} of these series, which are compared with another level then; a replay says it"
    yield from example_lines(trial)


def _stored(trial: Changes) -> Iterator[str]:
    if trial.stored.verdicts_from > trial.start:
        yield f"  verdicts are stored from {iso(trial.stored.verdicts_from)} on; nothing is known of the time before"


def change_lines(trial: Changes) -> Iterator[str]:
    """How many alarms go and come."""
    before = trial.alarms.filter(trial.alarms["outcome"] != "new").height
    gone, new = trial.count("gone"), trial.count("new")
    windows = counted(trial.windows[0], "window")
    yield f"removed: {gone} of {before} alarms ({windows}){listed(trial.severities('gone'))}"
    if gone:
        true, false = trial.count("gone", "true"), trial.count("gone", "false_alarm")
        lost, spared = counted(true, "true alarm"), counted(false, "false alarm")
        yield f"  by labels: {lost} lost, {spared} spared, {gone - true - false} without a label"
        whole, part = trial.incidents
        yield f"  incidents: {len(whole)} with all their series{listed(by_severity(whole))}; {len(part)} in part"
    yield f"added: {counted(new, 'alarm')} ({counted(trial.windows[1], 'window')}){listed(trial.severities('new'))}"


def example_lines(trial: Changes) -> Iterator[str]:
    """Up to ten alarms that go or come."""
    if trial.examples:
        yield f"examples, {len(trial.examples)} of {trial.count('gone') + trial.count('new')}:"
    for each in trial.examples:
        yield "  " + _example(each)


def _values(trial: Trial) -> str:
    """From when on quiet windows are known."""
    begin = trial.stored.values_from
    if begin is None:
        return "Kafka has no values of such windows, so only what the rule adds to stored verdicts is counted"
    if begin > trial.start:
        return f"values of quiet windows are in Kafka from {iso(begin)} on; what the rule adds before is not counted"
    return "values of quiet windows are those in Kafka"


def counted(number: int, of: str) -> str:
    """A number with its noun.

    >>> counted(1, "alarm"), counted(2, "alarm")
    ('1 alarm', '2 alarms')
    """
    return f"{number} {of}" if number == 1 else f"{number} {of}s"


def listed(counts: Mapping[str, int]) -> str:
    """What comes behind a number: its parts by severity.

    >>> listed({"major": 2, "minor": 1})
    ': 2 major, 1 minor'
    """
    return ": " + ", ".join(f"{number} {name}" for name, number in counts.items()) if counts else ""


def _example(each: dict[str, Any]) -> str:
    label = {"true": ", labelled true", "false_alarm": ", labelled a false alarm"}.get(each["label"], "")
    score = "" if each["score"] is None else f", score {each['score']:.0f}"
    values = "" if each["actual"] is None else f", value {each['actual']:g}"
    usual = "" if each["typical"] is None else f" (typical {each['typical']:g})"
    return (
        f"{each['outcome']}: {each['metric']} of {each['entity']} at {iso(each['from'])}{score}{values}{usual}{label}"
    )
