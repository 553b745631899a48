"""Tries rules for the console, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.cli.beside import beside
from pipelines.contracts.settings import Settings, load

SECONDS = 60.0
"""A trial may take so long; then it is given up."""

_DAY = 86_400_000


class ConsoleTrials:
    """The trials of one pipeline; see `dashboards.console.trials.Trials`.

    Args:
        settings: Gives the settings, with the servers' addresses filled in; asked at each call.
        overrides: The values of the command line by dotted name, from which they were loaded.
        seconds: How long a trial may take.
    """

    def __init__(self, settings: Callable[[], Settings], overrides: dict[str, Any], seconds: float = SECONDS) -> None:
        self._settings, self._overrides, self._seconds = settings, overrides, seconds

    def tried(
        self, fields: Mapping[str, object], limits: Mapping[str, str | None], minutes: int | None, days: int
    ) -> dict[str, Any]:
        """What a rule would have done in the last days, as `Trial.figures`, with ``lines``.

        Raises:
            NewnormalError: As `told_rule` and `tried`; ``TRIAL_SLOW``, ``TRIAL_ENDED``.
        """
        return self._asked(_tried, {"fields": dict(fields), "limits": dict(limits), "minutes": minutes}, days)

    def proposed(self, days: int) -> dict[str, Any]:
        """What the labels of the last days propose, as `Proposals.figures`, each with ``lines``.

        Raises:
            NewnormalError: As `proposed`; ``TRIAL_SLOW``, ``TRIAL_ENDED``.
        """
        return self._asked(_proposed, days)

    def _asked(self, function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
        found = self._settings()
        addresses = {"kafka.bootstrap": found.kafka.bootstrap, "elasticsearch.url": found.elasticsearch.url}
        less = "fewer days, or narrower machines and metrics; `newnormal rule try` has as long as it needs"
        nothing = "the rule was not tried"
        what = f"the trial was not done within {self._seconds:g} s"
        slow = NewnormalError("TRIAL_SLOW", what, "console", less, nothing)
        ended = NewnormalError("TRIAL_ENDED", "the process that tried the rule ended", "console", less, nothing)
        answer = beside(
            _answered, function, arguments, self._overrides | addresses,
            name="trial", ended=ended, seconds=self._seconds, slow=slow,
        )  # fmt: skip
        return dict(answer)


def _answered(
    function: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], overrides: dict[str, Any]
) -> dict[str, Any]:
    from elasticsearch import ApiError, TransportError  # servers: only in the process beside

    from pipelines.contracts.elasticsearch_client import unusable

    settings = load(**overrides)
    try:
        return function(settings, *arguments)
    except (ApiError, TransportError) as error:
        raise unusable(error, settings.elasticsearch.url or "", "the rule was not tried") from None


def _tried(settings: Settings, said: dict[str, Any], days: int) -> dict[str, Any]:
    from pipelines.cli.rule_trial import counts
    from pipelines.evaluation.rule_trial.past import tried
    from pipelines.query.operator import told_rule
    from pipelines.query.recent_windows import recent_windows

    now = now_ms()
    rule, told = told_rule(**said, settings=settings, time=now)
    if told.percentages:
        told.refuse_percentages(recent_windows(settings, rule.entity, rule.metric))
    found = tried(rule, now - days * _DAY, now, settings)
    return {**found.figures(), "lines": list(counts(found))}


def _proposed(settings: Settings, days: int) -> dict[str, Any]:
    from pipelines.cli.rule_trial import counts
    from pipelines.evaluation.rule_proposals.past import proposed

    now = now_ms()
    found = proposed(now - days * _DAY, now, settings, now)
    told = [{**each.figures(), "lines": list(counts(each.trial))} for each in found.found]
    return {**found.figures(), "proposals": told}
