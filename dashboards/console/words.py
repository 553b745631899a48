"""A novelty in words: what happened, how unlikely it was, what speaks for it. Pure; the page shows it as plain text."""

from __future__ import annotations

from typing import Any

from engine.time import iso

HEADLINES = {
    "anomaly": "Something is wrong",
    "state_change": "The system is changing state",
    "new_normal": "A new normal has been learned",
    "absence": "Nothing is heard any more",
    "recovered": "Back to what was normal",
    "learning": "Still learning what is normal",
    "normal": "As expected",
}


def explain(novelty: dict[str, Any]) -> dict[str, Any]:
    """Headline and sentences for one novelty document.

    >>> document = {"host.name": "web-1", "metric": "cpu", "kind": "anomaly", "actual": 93.0, "typical": 40.0,
    ...     "lower": 30.0, "upper": 50.0, "probability": 0.001, "record_score": 91.2}
    >>> explain(document)["sentences"][0]
    'cpu of web-1 was 93 where 40 was expected: 43 above the band of 30 to 50.'
    """
    sentences = [_value(novelty), _chance(novelty), _since(novelty), _influencers(novelty), _revision(novelty)]
    return {
        "headline": HEADLINES.get(novelty.get("kind", ""), "Something new"),
        "sentences": [sentence for sentence in sentences if sentence],
        "evidence": ranked(novelty.get("evidence") or {}),
        "influencers": ranked(novelty.get("influencers") or {}),
    }


def ranked(values: dict[str, float]) -> list[tuple[str, float]]:
    """Strongest first, by size."""
    return sorted(values.items(), key=lambda item: (-abs(item[1]), item[0]))


def number(value: float) -> str:
    """Four significant digits.

    >>> number(1234567.0), number(0.012345), number(93.0)
    ('1.235 M', '0.01235', '93')
    """
    rounded = float(f"{value:.4g}")
    for scale, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M")):
        if abs(rounded) >= scale:
            return f"{rounded / scale:.4g}{unit}"
    return f"{rounded:,.0f}" if abs(rounded) >= 1_000 else f"{rounded:g}"


def _value(novelty: dict[str, Any]) -> str:
    entity, metric = novelty.get("host.name", "?"), novelty.get("metric", "?")
    if metric == "*":
        return (
            f"Judged over all its metrics together, {entity} has a score of {number(novelty.get('record_score', 0.0))}."
        )
    what = f"{metric} of {entity}"
    actual, typical = novelty.get("actual"), novelty.get("typical")
    if actual is None:
        return f"{what} sent no value." if novelty.get("kind") == "absence" else f"{what}: no single value was judged."
    told = f"{what} was {number(actual)}" + (f" where {number(typical)} was expected" if typical is not None else "")
    lower, upper = novelty.get("lower"), novelty.get("upper")
    if lower is None or upper is None:
        return told + "."
    band = f"the band of {number(lower)} to {number(upper)}"
    if actual > upper:
        return f"{told}: {number(actual - upper)} above {band}."
    if actual < lower:
        return f"{told}: {number(lower - actual)} below {band}."
    return f"{told}: within {band}."


def _chance(novelty: dict[str, Any]) -> str:
    probability = novelty.get("probability")
    if probability is None:
        return ""
    if probability <= 0:
        return "Were all as before, a value at least as extreme would practically never be seen."
    if probability >= 0.5:
        return f"Were all as before, a value at least as extreme would be seen in {probability:.0%} of windows."
    return f"Were all as before, a value at least as extreme would be seen in 1 of {number(1 / probability)} windows."


def _since(novelty: dict[str, Any]) -> str:
    since = novelty.get("since")
    return f"It began at {iso(since)[:19].replace('T', ' ')} UTC." if since is not None else ""


def _influencers(novelty: dict[str, Any]) -> str:
    top = ranked(novelty.get("influencers") or {})[:3]
    return "It comes mostly from " + ", ".join(name for name, _ in top) + "." if top else ""


def _revision(novelty: dict[str, Any]) -> str:
    revision = novelty.get("revision") or 0
    return f"Late data changed this verdict; it is revision {revision}." if revision else ""
