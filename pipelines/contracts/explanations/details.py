"""The figures behind a novelty, for experts: probability, evidence in nats, weights of the model's experts, shares."""

from __future__ import annotations

from pipelines.contracts.explanations.facts import Facts, ranked
from pipelines.contracts.quantities.words import number
from pipelines.contracts.records.novelty import JOINED, PEERS

_CHANNELS = {
    "point": "the value itself",
    "window": "unusual values for some time",
    "record": "a value beyond all recent ones",
    "change": "a sudden step",
    "frozen": "the same value over and over",
    "departure": "a departure from the last values",
    "absence": "missing windows",
    "unseen": "a log template not seen before",
    "mix": "an unusual mix of log lines",
    "burst": "more lines of a template than usual",
    "silence": "lines that are missing",
    "severity": "an unusual mix of severities",
}
_JOINED = {"point": "its most unusual metric", "window": "all its metrics on average"}
_PEERS = {"point": "its distance from its peers"}
_EXPERTS = {
    "level": "its recent level",
    "log_level": "its recent level on a logarithmic scale",
    "hour": "the same hour on earlier days",
    "count": "the usual count in a window",
    "ratio": "the usual share",
    "categorical": "the few values that it usually has",
}
_LEAST_NATS = 1.0
"""Evidence below this many nats is not shown: it occurs by chance in about one window of three."""

_NEVER = 1e-9
"""A probability below this is written as "practically never"."""


def details(facts: Facts) -> list[str]:
    """All figures of a novelty, one sentence each; figures that are not known are left out."""
    found = (_chance(facts), _evidence(facts), _expectation(facts), _shares(facts), _template(facts))
    return [sentence for sentence in found if sentence]


def _chance(facts: Facts) -> str:
    score, probability = facts.number("record_score"), facts.number("probability")
    scored = "" if score is None else f"Score {number(score)} of 100. "
    if probability is None or facts.kind == "recovered":
        return scored.strip()
    if facts.kind == "exhaustion":
        median = facts.number("full_median")
        halfway = "" if median is None else f"It is full before {facts.instant(int(median))} as likely as after."
        return f"{scored}{halfway}".strip()
    often = (
        "practically never"
        if probability < _NEVER
        else f"in {probability:.0%} of windows"
        if probability >= 0.5
        else f"in 1 of {number(1 / probability)} windows"
    )
    return f"{scored}If nothing had changed, a value at least as extreme would be seen {often}."


def _evidence(facts: Facts) -> str:
    beside = _PEERS if facts.metric.startswith(PEERS) else _CHANNELS
    names = _JOINED if facts.metric == JOINED else beside
    strong = [(names.get(name, name), nats) for name, nats in facts.evidence.items() if nats >= _LEAST_NATS]
    parts = ", ".join(f"{name} ({nats:.1f} nats)" for name, nats in strong)
    return f"Evidence: {parts}." if parts else ""


def _expectation(facts: Facts) -> str:
    expected, experts = dict(ranked(facts.novelty.get("expected"))), dict(ranked(facts.novelty.get("experts")))
    if not experts or facts.number("actual") is None:
        return ""
    hour = expected.get("hour")
    if hour is None and "hour" in experts:  # there are no two similar days yet: its hours are those of today
        experts["level"] = experts.get("level", 0.0) + experts.pop("hour")
    usual = f" At this hour it was about {facts.scale(hour)} on similar days before." if hour is not None else ""
    name, share = ranked(experts)[0]
    return f"The expected value follows mainly {_EXPERTS.get(name, name)} ({share:.0%}).{usual}"


def _shares(facts: Facts) -> str:
    top = [] if facts.metric.startswith(PEERS) else ranked(facts.novelty.get("influencers"))
    return "Shares: " + ", ".join(f"{name} {share:.0%}" for name, share in top) + "." if top else ""


def _template(facts: Facts) -> str:
    template = facts.novelty.get("log.template")
    return f"Template: {template}" if template else ""
