"""What a rule would have removed and added: the detector's own rule function on stored verdicts, with and without it.

The alarms of both are matched as those of two versions are (`pipelines.evaluation.comparison.alarms`). What rules do to
a verdict follows from the verdict, so this is what a replay gives. It is not where models would have learned something
else (``skip_learning``, ``weekend``), nor for the joined verdict on a machine one metric of which the rule removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipelines.contracts.records import Rule
from pipelines.contracts.records.novelty import JOINED
from pipelines.evaluation.rule_trial.changes import Changes, examples
from pipelines.evaluation.rule_trial.stored import Stored
from pipelines.evaluation.truth import Span
from pipelines.jobs.detectors.rules import applied, are_of
from pipelines.jobs.detectors.rules_in_force import RuleInForce


@dataclass(frozen=True)
class Trial(Changes):
    """What a rule would have done in a time.

    Attributes:
        rule: The rule.
        undecided: The number of joined alarms that a replay may judge otherwise.
    """

    rule: Rule
    undecided: int

    def figures(self) -> dict[str, Any]:
        """All figures as JSON."""
        rule = self.rule.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"time", "note"})
        return {"rule": rule, **super().figures(), "undecided_joined_alarms": self.undecided}


def trial(
    rule: Rule, start: int, end: int, stored: Stored, others: Sequence[RuleInForce], spans: Sequence[Span]
) -> Trial:
    """Tries a rule as if it had been in force for all of a time.

    Args:
        rule: The rule.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        stored: What is stored of that time.
        others: All other rules, with the times in which they are in force: a rule that removes wins over one that
            reports, whichever is newer.
        spans: What labels and the ground truth say.
    """
    others = [each for each in others if each.rule.id != rule.id]
    verdicts = stored.verdicts.with_columns(
        probability=pl.lit(None, pl.Float64), decided=pl.lit(None, pl.Int64), number=pl.int_range(pl.len())
    )
    first, second = applied(others, verdicts), applied([*others, RuleInForce(rule, start, end)], verdicts)
    found = Changes.between((first, second), start, end, stored, spans)
    withholds = rule.only is not None or bool(rule.min_change) or bool(rule.min_change_share)
    removes = rule.skip_result or (withholds and not rule.report)
    kept = found.alarms.filter(pl.col("metric") == JOINED, pl.col("outcome") != "gone").height
    own = found.alarms.filter(pl.Series(are_of(rule, found.alarms["metric"])))
    fields = vars(found) | {"alarms": own, "examples": examples(own, first, stored.incidents)}
    return Trial(**fields, rule=rule, undecided=kept if removes else 0)
