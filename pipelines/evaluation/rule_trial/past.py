"""Tries a rule on what the servers have stored of the past."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Rule
from pipelines.contracts.records.rule import EFFECTS
from pipelines.contracts.settings import Settings
from pipelines.evaluation.comparison.reading import spans
from pipelines.evaluation.rule_trial.stored import stored
from pipelines.evaluation.rule_trial.trial import Trial, trial
from pipelines.query.control_topics import rules_over_time

_TRIED = "an effect on what is reported: --skip-result, --report, --only, --min-change, --min-change-share"


def tried(rule: Rule, start: int, end: int, settings: Settings) -> Trial:
    """What a rule would have done in a time.

    Args:
        rule: The rule.
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        settings: The settings, with the servers' addresses filled in.

    Raises:
        NewnormalError: ``USAGE_INVALID`` if nothing stored tells what the rule does; as `stored`.
        elasticsearch.ApiError: Elasticsearch refuses; a `TransportError` if it does not answer.
    """
    if untold := only_teaches(rule):
        raise NewnormalError("USAGE_INVALID", untold, "rule try", _TRIED, "the rule was not tried")
    known = stored(rule, start, end, settings)
    said, _ = spans(settings, (), ())
    return trial(rule, start, end, known, rules_over_time(settings), said)


def only_teaches(rule: Rule) -> str:
    """Why what is stored does not tell what a rule would have done; empty if it does."""
    effects = {name for name in EFFECTS if getattr(rule, name) not in (None, False)}
    if effects <= {"store"}:
        return "the rule changes only which windows are stored"
    if effects <= {"store", "skip_learning", "weekend"}:
        return "the rule changes what the models learn, which no stored verdict tells; a replay does (docs/replay.md)"
    return ""
