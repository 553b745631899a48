"""From labels to proposals: the labelled alarms of a time, what the false ones have in common, the trial of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import polars as pl

from pipelines.contracts.globs import matches
from pipelines.contracts.records import Rule
from pipelines.contracts.records.novelty import ALARM_KINDS, JOINED
from pipelines.evaluation.comparison.verdicts import SERIES
from pipelines.evaluation.rule_proposals.rows import FALSE, OTHER, TRUE, Rows
from pipelines.evaluation.rule_proposals.search import Common, search
from pipelines.evaluation.rule_proposals.traits import LEAST, traits_of
from pipelines.evaluation.rule_trial.stored import Stored
from pipelines.evaluation.rule_trial.trial import Trial, trial
from pipelines.evaluation.truth import Span
from pipelines.jobs.detectors.rules_in_force import RuleInForce

MOST_FALSE = 1_000
"""Among so many false alarms, the newest, something in common is looked for."""

_LONGEST_NAME = 200


@dataclass(frozen=True)
class Proposal:
    """A rule that would remove false alarms.

    Attributes:
        rule: The rule.
        trial: What it would have removed.
    """

    rule: Rule
    trial: Trial

    @property
    def words(self) -> str:
        """What the false alarms have in common, in a sentence."""
        number = self.trial.count("gone", FALSE)
        which = f"these {number} false alarms have" if number != 1 else "this false alarm has"
        return f"{which} this in common: {'; '.join(_conditions(self.rule))}"

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        return {"words": self.words, **self.trial.figures()}


@dataclass(frozen=True)
class Proposals:
    """What labels propose.

    Attributes:
        found: The best first.
        false: How many alarms are labelled false, of those that no rule in force would remove.
        true: How many are labelled true.
        complete: False if the search was cut short, so that there may be better ones.
    """

    found: Sequence[Proposal]
    false: int
    true: int
    complete: bool

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        return {
            "proposals": [each.figures() for each in self.found], "false_alarms": self.false,
            "true_alarms": self.true, "complete": self.complete,
        }  # fmt: skip


def proposals(
    start: int,
    end: int,
    stored: Stored,
    rules: Sequence[RuleInForce],
    spans: Sequence[Span],
    now: int,
    timezone: str = "UTC",
) -> Proposals:
    """Proposes rules that remove false alarms and no true one.

    What the rules remove that are in force now is not proposed again. Joined verdicts are left out: they follow from
    those on metrics.

    Args:
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: All news of that time.
        rules: All rules, with the times in which they are in force.
        spans: What labels and the ground truth say.
        now: The present, epoch milliseconds.
        timezone: IANA name of the time zone of times of the week.
    """
    standing = [RuleInForce(each.rule, start, end) for each in rules if each.start <= now < each.end]
    everything = Rule(id="everything", time=start, skip_result=True)
    alarms = trial(everything, start, end, stored, standing, spans).alarms
    alarms = alarms.filter(pl.col("outcome") == "gone", pl.col("metric") != JOINED)
    alarms = alarms.with_row_index("alarm").with_columns(label=pl.col("label").fill_null(OTHER))
    counts = {label: alarms.filter(label=label).height for label in (FALSE, TRUE)}
    found = list[Proposal]()
    old = alarms.filter(label=FALSE).sort("from0", "alarm").head(max(0, counts[FALSE] - MOST_FALSE))
    rows = Rows(_windows(alarms.join(old, on="alarm", how="anti"), stored.verdicts))
    if counts[FALSE] < LEAST:
        return Proposals(found, counts[FALSE], counts[TRUE], complete=True)
    made = search(traits_of(rows, timezone), rows.days())
    for common in made.found:
        rule = _rule(common, start)
        tried = trial(rule, start, end, _concerned(stored, rule), rules, spans)
        if not tried.count("gone", TRUE) and tried.count("gone", FALSE) >= LEAST:
            found.append(Proposal(rule, tried))
    return Proposals(found, counts[FALSE], counts[TRUE], made.complete)


def _windows(alarms: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """The windows of some alarms, as `Rows` takes them."""
    news = verdicts.filter(pl.col("kind").is_in(ALARM_KINDS)).sort("window_start")
    spans = alarms.select("alarm", "label", *SERIES, pl.col("from0").alias("window_start"), "to0").sort("window_start")
    both = news.join_asof(spans, on="window_start", by=list(SERIES), strategy="backward", check_sortedness=False)
    own = both.filter(pl.col("window_end") <= pl.col("to0"))
    return own.select("alarm", "label", *SERIES, "window_start", "actual", "typical")


def _concerned(stored: Stored, rule: Rule) -> Stored:
    """What is stored of the series that a rule matches, and of their machines as a whole."""
    frame = stored.verdicts
    machine, metric = pl.Series(matches(rule.entity, frame["entity"])), pl.Series(matches(rule.metric, frame["metric"]))
    return replace(stored, verdicts=frame.filter(machine & (metric | (frame["metric"] == JOINED))))


def _rule(common: Common, start: int) -> Rule:
    rule = Rule.model_validate({"id": "proposed", "time": start, **common.fields})
    name = "less " + ", ".join(_conditions(rule))
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]} {sha256(name.encode()).hexdigest()[:8]}"
    number = common.cover.false.bit_count()
    return rule.model_copy(update={"id": name, "note": f"proposed by the labels of {number} false alarms"})


def _conditions(rule: Rule) -> list[str]:
    """What a rule that was proposed applies to, each in words."""
    found = [f"metric {rule.metric}"] if rule.metric != "*" else []
    found += [f"machines {rule.entity}" if "*" in rule.entity else f"machine {rule.entity}"] * (rule.entity != "*")
    found += [f"{rule.times} {rule.timezone}"] if rule.times else []
    found += [f"values below {rule.below:g}"] if rule.below is not None else []
    found += ["below what is typical"] if rule.only == "up" else []
    found += ["above what is typical"] if rule.only == "down" else []
    found += [f"less than {rule.min_change:g} from what is typical"] if rule.min_change is not None else []
    share = rule.min_change_share
    return found + ([f"less than {share:.0%} from what is typical"] if share is not None else [])
