"""The figures behind a novelty: its chance, evidence in nats, whom the expectation follows, shares. For experts."""

from __future__ import annotations

from pipelines.contracts.explanations.facts import Facts, ranked
from pipelines.contracts.explanations.quantities import number
from pipelines.contracts.records.novelty import JOINED

_CHANNELS = {
    "point": "the value itself",
    "window": "unusual values for some time",
    "record": "a value beyond all of late",
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
_LEAST_NATS = 1.0
"""Evidence that would be seen in one window of three says nothing."""

_NEVER = 1e-9
"""A chance below this is none in practice."""


def details(facts: Facts) -> list[str]:
    """All figures, as sentences."""
    found = (_chance(facts), _evidence(facts), _expectation(facts), _shares(facts), _template(facts))
    return [sentence for sentence in found if sentence]


def _chance(facts: Facts) -> str:
    score, probability = facts.number("record_score"), facts.number("probability")
    told = "" if score is None else f"Score {number(score)} of 100. "
    if probability is None or facts.kind == "recovered":
        return told.strip()
    often = (
        "practically never"
        if probability < _NEVER
        else f"in {probability:.0%} of windows"
        if probability >= 0.5
        else f"in 1 of {number(1 / probability)} windows"
    )
    return f"{told}Were all as before, a value at least as extreme would be seen {often}."


def _evidence(facts: Facts) -> str:
    names = _JOINED if facts.metric == JOINED else _CHANNELS
    strong = [(names.get(name, name), nats) for name, nats in facts.evidence.items() if nats >= _LEAST_NATS]
    parts = ", ".join(f"{name} ({nats:.1f} nats)" for name, nats in strong)
    return f"Evidence: {parts}." if parts else ""


def _expectation(facts: Facts) -> str:
    expected, experts = dict(ranked(facts.novelty.get("expected"))), ranked(facts.novelty.get("experts"))
    if not experts or facts.number("actual") is None:
        return ""
    hour = expected.get("hour")
    usual = f" At this hour it was about {facts.scale(hour)} on such days before." if hour is not None else ""
    name, share = experts[0]
    return f"What is expected follows {_EXPERTS.get(name, name)} ({share:.0%}).{usual}"


def _shares(facts: Facts) -> str:
    top = ranked(facts.novelty.get("influencers"))
    return "Shares: " + ", ".join(f"{name} {share:.0%}" for name, share in top) + "." if top else ""


def _template(facts: Facts) -> str:
    template = facts.novelty.get("log.template")
    return f"Template: {template}" if template else ""
