"""Proposes rules from what the servers have stored of the past."""

from __future__ import annotations

from pipelines.contracts.records import Rule
from pipelines.contracts.settings import Settings
from pipelines.evaluation.comparison.reading import spans
from pipelines.evaluation.rule_proposals.proposals import Proposals, proposals
from pipelines.evaluation.rule_trial.stored import stored
from pipelines.query.control_topics import rules_over_time


def proposed(start: int, end: int, settings: Settings, now: int) -> Proposals:
    """What the labels of a time propose.

    Args:
        start: First instant, epoch milliseconds.
        end: Last instant, exclusive.
        settings: The settings, with the servers' addresses filled in.
        now: The present, epoch milliseconds.

    Raises:
        NewnormalError: As `stored`.
        elasticsearch.ApiError: Elasticsearch refuses; a `TransportError` if it does not answer.
    """
    everything = Rule(id="everything", time=start, skip_result=True)
    known = stored(everything, start, end, settings)
    said, _ = spans(settings, (), ())
    return proposals(start, end, known, rules_over_time(settings), said, now, settings.detector.timezone)
