"""The steps from a machine to a person: the one list of which docs/why-no-alert.md and `newnormal why-not` are made."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pipelines.contracts.records.novelty import sent_metric


@dataclass(frozen=True)
class Step:
    """A step at which what happened may have ended.

    Attributes:
        name: Its name in JSON.
        question: What is asked.
        ask: What answers it: commands with ``{machine}`` and ``{metric}``.
        if_so: What it means and what to do, as Markdown.
    """

    name: str
    question: str
    ask: str
    if_so: str

    def commands(self, machine: str, metric: str) -> str:
        """What answers it for a series, whose names a shell and our programs take as they are."""
        names = [machine, sent_metric(metric)]
        end = "-- " if any(name.startswith("-") for name in names) else ""
        machine, metric = map(shlex.quote, names)
        return self.ask.format(machine=f"{end}{machine}", metric=metric)


STEPS = (
    Step(
        "arrived",
        "Did the values arrive?",
        "`newnormal query windows -n 60 {machine} {metric}`",
        "an empty answer, or `VIEW_SERIES_UNKNOWN`: the agent sends nothing, or under another name "
        "(`newnormal query states web-`), or its messages cannot be used: `newnormal deadletter list` "
        "([input.md](input.md))",
    ),
    Step(
        "in_time",
        "Did they arrive in time?",
        "`newnormal status`, column *late*",
        "windows that are over by more than `window.allowed_lateness` (10 minutes) are not judged any more; "
        "see [troubleshooting.md](troubleshooting.md) for a clock that is wrong or a partition that lags",
    ),
    Step(
        "shown",
        "Does the window show it?",
        "the same windows: `mean`, `max`",
        "a peak of a second is small in the mean of ten seconds. Take shorter windows (`window.size`), or "
        "send what hurts (a latency, a count of errors) as a metric of its own",
    ),
    Step(
        "learned",
        "Was the series still new?",
        "`newnormal query state {machine} {metric}`",
        "the first 8 windows with a value have the kind `learning` and are never news; without a day's "
        "history, the hour of the day is not known yet",
    ),
    Step(
        "unusual",
        "Was it unusual for this series?",
        "the same: `typical`, `lower`, `upper`",
        "a value inside the band is usual here. A series that often does this has a wide band, by intent. A "
        "limit that must never be passed is a rule: `newnormal rule add disk-full --metric "
        "'disk.used_ratio*' --above 95% --report`",
    ),
    Step(
        "score",
        "Was the score high enough?",
        "the same windows: `record_score`",
        "below `detector.threshold` (50; 58 of windows of a minute or less, 36 of half an hour or more, "
        "after the first six hours of the series) nothing is said. Allow more false alarms "
        "(`detector.false_alarms`), or lower it for all, and look at what that brings before you keep it: "
        "[replay](replay.md) into another version, then `newnormal compare`",
    ),
    Step(
        "recurs",
        "Had the same come before?",
        "the console's plot, or the same windows further back",
        "what jumps away, returns and comes back is told three times again if it had a score of 50 and "
        "lasted six windows. More often within ten hours, it is expected; so is, for some hours, a smaller "
        "surge after a large one. The plot shows such a value as a hollow ring: *beyond the band, not "
        "reported*. A limit that must always be told is a rule (5). What comes at the same time of two of "
        "the last four days, three weeks or three months, and is not twice as large, is expected: its third "
        "time is told of no more",
    ),
    Step(
        "rules",
        "Did a rule or label forbid it?",
        "`newnormal rule list`, `newnormal label list`",
        "the verdict names the rules in `rules`. After `false_alarm` the evidence of the series counts less, "
        "at the least a quarter; `expected_change` has made the level usual",
    ),
    Step(
        "open",
        "Was it part of something that was open?",
        "`newnormal incidents list --all`",
        "a series that is novel already, or a machine in an open incident, gives no new message: the "
        "incident grew ([incidents.md](incidents.md))",
    ),
    Step(
        "incident",
        "Was it worth an incident?",
        "the console, or `newnormal tail novelties`",
        "novelties whose severity together is below `incidents.score` (50), or below what "
        "`incidents.false_pages` (2 a week for the site) asks for, are no incident, unless "
        "`incidents.series` (5) series are novel or one has stopped ([Severity](incidents.md#severity))",
    ),
    Step(
        "told",
        "Was it told?",
        "`newnormal notify routes`, `newnormal notify test NAME`, the log of `newnormal notify run`",
        "no route that names the channel, its `severity`, quiet hours, rate; or the receiver refuses "
        "([notifications.md](notifications.md#when-nothing-arrives))",
    ),
)
"""The steps in the order in which data flow."""

BEGIN = "<!-- steps: written by `newnormal docs` from pipelines/why_not/steps.py -->"
END = "<!-- end of the steps -->"


def with_steps(page: str) -> str:
    """A page with the present table between `BEGIN` and `END`; a page without these lines stays as it is."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    rows = [
        f"| {number} {step.question} | {step.commands('web-1', 'cpu.util')} | {step.if_so} |\n"
        for number, step in enumerate(STEPS, 1)
    ]
    table = f"| question | ask | if it is so |\n| --- | --- | --- |\n{''.join(rows)}"
    return f"{before}{begin}\n\n{table}\n{end}{after}" if begin and end else page
