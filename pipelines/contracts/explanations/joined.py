"""Sentences on all metrics of a machine together."""

from __future__ import annotations

from pipelines.contracts.explanations.facts import Facts, ranked
from pipelines.contracts.explanations.quantities import Scale, listed, number

_MOST, _LEAST = 3, 0.1
"""Metrics that are named at the most, and the share of the verdict from which on a further one is."""

_TIMES = 2.0
"""From so many times what is usual on a value is told as such."""


def sentences(facts: Facts) -> list[str]:
    """All sentences on a machine, empty ones among them."""
    entity = facts.entity
    if facts.kind == "absence":
        return [f"{entity} has sent nothing{facts.from_onset}: none of its metrics."]
    if facts.kind == "recovered":
        absent = facts.context.get("absent") or not facts.novelty.get("influencers")
        return [f"{entity} {'sends again' if absent else 'is normal again'}{facts.after()}."]
    if facts.quiet:
        usual = "What is usual of it is still being learned." if facts.kind == "learning" else ""
        return [f"The metrics of {entity} were judged together.", usual, facts.course()]
    if facts.kind == "new_normal":
        return [f"What the metrics of {entity} have been{facts.from_onset} is usual from now on."]
    return [_unusual(facts), facts.since]


def _unusual(facts: Facts) -> str:
    shares = ranked(facts.novelty.get("influencers"))
    named = [name for place, (name, share) in enumerate(shares[:_MOST]) if not place or share >= _LEAST]
    if not named:
        return f"{facts.by_rule()}{facts.entity} is unusual over all its metrics together."
    actuals, typicals, suggested = (
        dict(ranked(facts.novelty.get(name))) for name in ("actuals", "typicals", "suggested")
    )
    outside = [name for name in named if name not in suggested]
    if outside:
        parts = [_part(name, actuals.get(name), typicals.get(name), "usually") for name in outside]
        return f"{facts.by_rule()}{facts.entity} is unusual in {listed(parts)}."
    parts = [_part(name, actuals.get(name), suggested[name], "its other metrics suggest") for name in named]
    return f"{facts.by_rule()}Each metric of {facts.entity} is ordinary, but not together: {listed(parts)}."


def _part(name: str, actual: float | None, typical: float | None, how: str) -> str:
    if actual is None or typical is None:
        return name
    if how == "usually" and typical > 0 and actual >= _TIMES * typical:
        return f"{name} ({number(actual / typical)} ×)"
    scale = Scale(actual - typical, largest=max(abs(actual), abs(typical)))
    return f"{name} ({scale(actual)}, {how} {scale(typical)})"
