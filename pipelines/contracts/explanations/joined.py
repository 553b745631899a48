"""The sentences of a joined verdict, which judges all metrics of a machine together."""

from __future__ import annotations

from pipelines.contracts.explanations.facts import Facts, ranked
from pipelines.contracts.quantities.words import Scale, listed, number

_MOST, _LEAST = 3, 0.1
"""The largest number of metrics that are named; the smallest share of the verdict with which a further one is named."""

_TIMES = 2.0
"""A value of at least this many times the usual one is written as a multiple, such as "3 ×"."""


def sentences(facts: Facts) -> list[str]:
    """The sentences on a machine; those that do not apply are empty."""
    entity = facts.entity
    if facts.kind == "absence":
        return [f"{entity} has sent nothing{facts.from_onset}: none of its metrics."]
    if facts.kind == "recovered":
        absent = facts.context.get("absent") or not facts.novelty.get("influencers")
        return [f"{entity} {'sends again' if absent else 'is normal again'}{facts.after()}."]
    if facts.quiet:
        usual = "What is usual is still being learned." if facts.kind == "learning" else ""
        return [f"The metrics of {entity} were judged together.", usual, facts.course()]
    if facts.kind == "new_normal":
        return [f"{entity} has a new normal: its values{facts.from_onset} count as usual from now on."]
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
    return f"{facts.by_rule()}Each metric of {facts.entity} is ordinary, but their combination is not: {listed(parts)}."


def _part(name: str, actual: float | None, typical: float | None, how: str) -> str:
    if actual is None or typical is None:
        return name
    if how == "usually" and typical > 0 and actual >= _TIMES * typical:
        return f"{name} ({number(actual / typical)} ×)"
    scale = Scale(actual - typical, largest=max(abs(actual), abs(typical)))
    return f"{name} ({scale(actual)}, {how} {scale(typical)})"
