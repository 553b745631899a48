"""A novelty in words: what happened, how unlikely it was, what speaks for it.

The detector puts them into `message` of what is news; the console shows them of any document, as plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from engine.time import iso
from pipelines.records import Novelty
from pipelines.records.novelty import JOINED, QUIET_KINDS

HEADLINES = {
    "anomaly": "Something is wrong",
    "state_change": "The system is changing state",
    "new_normal": "A new normal has been learned",
    "absence": "Nothing is heard any more",
    "recovered": "Back to what was normal",
    "learning": "Still learning what is normal",
    "normal": "As expected",
}


_CHANNELS = {
    "point": "the value itself",
    "window": "unusual values for some time",
    "record": "a value beyond all seen before",
    "change": "a sudden step",
    "frozen": "the same value over and over",
    "absence": "windows that did not come",
    "unseen": "a log template not seen before",
    "mix": "another mix of log lines",
    "burst": "more lines of a template than usual",
    "silence": "lines that are missing",
    "severity": "another mix of severities",
}
_JOINED = {"point": "its most unusual metric", "window": "all its metrics on average"}
_EXPERTS = {
    "level": "its level of late",
    "log_level": "its level of late on a logarithmic scale",
    "hour": "the same hour of days before",
    "count": "how many there usually are in a window",
    "ratio": "the share that it usually is",
    "categorical": "the few values that it usually has",
}
_NAMES = {name: info.alias or name for name, info in Novelty.model_fields.items()}
_LEAST_NATS = 1.0
"""Evidence that would be seen in one window of three says nothing."""


def told(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Verdicts with the column `message` filled where they are news.

    Args:
        verdicts: A frame of `pipelines.detection.SCHEMA`.
    """
    news = ~verdicts["kind"].is_in(QUIET_KINDS)
    messages: list[str | None] = [None] * verdicts.height
    for place, row in zip(news.arg_true(), verdicts.filter(news).iter_rows(named=True), strict=True):
        messages[place] = message({_NAMES[name]: value for name, value in row.items()})
    return verdicts.with_columns(message=pl.Series(messages, dtype=pl.String))


def message(novelty: Mapping[str, Any]) -> str:
    """All of it as one text."""
    words = explain(novelty)
    return " ".join([words["headline"] + ".", *words["sentences"]])


def explain(novelty: Mapping[str, Any]) -> dict[str, Any]:
    """Headline and sentences for one novelty document.

    >>> document = {"host.name": "web-1", "metric": "cpu", "kind": "anomaly", "actual": 93.0, "typical": 40.0,
    ...     "lower": 30.0, "upper": 50.0, "probability": 0.001, "record_score": 91.2}
    >>> explain(document)["sentences"][0]
    'cpu of web-1 was 93 where 40 was expected: 43 above the band of 30 to 50.'
    """
    parts = (_value, _usual, _chance, _evidence, _line, _since, _influencers, _revision)
    sentences = [part(novelty) for part in parts]
    return {
        "headline": HEADLINES.get(novelty.get("kind", ""), "Something new"),
        "sentences": [sentence for sentence in sentences if sentence],
        "evidence": ranked(novelty.get("evidence")),
        "influencers": ranked(novelty.get("influencers")),
    }


def ranked(values: Any) -> list[tuple[str, float]]:
    """Named numbers, strongest first, by size; from an object, or from entries as Arrow has them."""
    pairs = values.items() if isinstance(values, Mapping) else [(each["key"], each["value"]) for each in values or []]
    return sorted(((name, value) for name, value in pairs if value is not None), key=lambda e: (-abs(e[1]), e[0]))


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


def _value(novelty: Mapping[str, Any]) -> str:
    entity, metric = novelty.get("host.name", "?"), novelty.get("metric", "?")
    whole, gone = metric == JOINED, novelty.get("kind") == "absence"
    what = f"The number of log lines of {entity}" if metric == "logs" else f"{metric} of {entity}"
    actual, typical = novelty.get("actual"), novelty.get("typical")
    if gone:
        return f"{entity if whole else what} is no longer heard of: a window that was expected did not come."
    if whole or actual is None:
        score = number(novelty.get("record_score", 0.0))
        judged = f"Judged over all its metrics together, {entity} has a score of {score}."
        return judged if whole else f"{what}: no single value was judged."
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


def _chance(novelty: Mapping[str, Any]) -> str:
    probability = novelty.get("probability")
    if probability is None:
        return ""
    if probability <= 0:
        return "Were all as before, a value at least as extreme would practically never be seen."
    if probability >= 0.5:
        return f"Were all as before, a value at least as extreme would be seen in {probability:.0%} of windows."
    return f"Were all as before, a value at least as extreme would be seen in 1 of {number(1 / probability)} windows."


def _usual(novelty: Mapping[str, Any]) -> str:
    """What was usual at this hour, and which expert it was that expected something else."""
    expected, experts = dict(ranked(novelty.get("expected"))), ranked(novelty.get("experts"))
    if not experts or novelty.get("actual") is None:
        return ""
    hour = expected.get("hour")
    usual = f"At this hour it was about {number(hour)} on such days before. " if hour is not None else ""
    name, share = experts[0]
    return f"{usual}What is expected follows {_EXPERTS.get(name, name)} ({share:.0%})."


def _evidence(novelty: Mapping[str, Any]) -> str:
    names = _JOINED if novelty.get("metric") == JOINED else _CHANNELS
    strong = [(names.get(name, name), nats) for name, nats in ranked(novelty.get("evidence")) if nats >= _LEAST_NATS]
    parts = ", ".join(f"{name} ({nats:.1f} nats)" for name, nats in strong[:3])
    return f"What speaks for it: {parts}." if parts else ""


def _line(novelty: Mapping[str, Any]) -> str:
    template, line = novelty.get("log.template"), novelty.get("event.original")
    return f"Template: {template}. A line of it: {line}" if template and line else ""


def _since(novelty: Mapping[str, Any]) -> str:
    since = novelty.get("since")
    return f"It began at {iso(since)[:19].replace('T', ' ')} UTC." if since is not None else ""


def _influencers(novelty: Mapping[str, Any]) -> str:
    top = ranked(novelty.get("influencers"))[:3]
    return "It comes mostly from " + ", ".join(f"{name} ({share:.0%})" for name, share in top) + "." if top else ""


def _revision(novelty: Mapping[str, Any]) -> str:
    revision = novelty.get("revision") or 0
    return f"Late data changed this verdict; it is revision {revision}." if revision else ""
