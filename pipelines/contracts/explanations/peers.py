"""The sentences of a verdict on a metric of a machine beside the same of its peers."""

from __future__ import annotations

from pipelines.contracts.explanations.facts import Facts
from pipelines.contracts.quantities.words import number
from pipelines.contracts.records.novelty import judged_metric

_EQUAL, _SMALL, _NOTHING = 0.15, 0.1, 1e-6
"""Two values are equal in words up to this share of theirs, or of so much of the machine's own; less than this share
of its own is nothing."""
_TIMES, _MOST = 1.5, 1000.0
"""From how many times on, and up to how many, one value is written as a multiple of the other."""


def sentences(facts: Facts) -> list[str]:
    """The sentences; those that do not apply are empty.

    >>> context = [{"key": "peers", "value": 9.0}, {"key": "theirs", "value": 20.0}]
    >>> document = {"host.name": "web-7", "metric": "_peers.latency.p95", "kind": "outlier", "actual": 62.0,
    ...     "typical": 20.5, "since": 1784802520000, "@timestamp": 1784802530000, "context": context}
    >>> sentences(Facts(document, "UTC"))[0]
    'web-7: latency.p95 is 3.1 × that of its 9 peers, which it used to equal.'
    >>> document |= {"typical": 0.02, "context": [{"key": "peers", "value": 9.0}, {"key": "theirs", "value": 0.0}]}
    >>> sentences(Facts(document, "UTC"))[0]
    'web-7: latency.p95 is 62, that of its 9 peers 0, which it used to equal.'
    """
    entity, metric = facts.entity, judged_metric(facts.metric)
    if facts.kind == "recovered":
        after = f",{facts.after()}," if facts.after() else ""
        return [f"{entity}: {metric} is{after} again as far from that of its peers as it used to be."]
    if facts.kind == "new_normal":
        return [f"{entity}: {metric} has been unlike that of its peers{facts.from_onset}; this counts as usual now."]
    if facts.quiet and "values" in facts.context and facts.context.get("theirs") is None:
        return [f"{entity}: {metric} has had too few peers to be compared with for a day.", facts.course()]
    if facts.quiet and facts.context.get("peers") == 0:
        return [f"{entity}: {metric} has other peers, or none, since settings were changed.", facts.course()]
    if facts.quiet:
        return [f"{metric} of {entity} was compared with that of its peers.", facts.course()]
    return [f"{facts.by_rule()}{entity}: {metric} is {_beside(facts)}.", facts.since]


def _beside(facts: Facts) -> str:
    actual, theirs, expected = facts.number("actual"), facts.context.get("theirs"), facts.number("typical")
    peers = f"{facts.context.get('peers', 0):.0f} peers"
    if actual is None or theirs is None or expected is None:
        return f"unlike that of its {peers}"
    scale = facts.scale
    theirs, expected = (0.0 if abs(each) < _NOTHING * abs(actual) else each for each in (theirs, expected))
    multiple = theirs > 0 and (
        _MOST * theirs >= actual >= _TIMES * theirs or theirs / _MOST <= actual <= theirs / _TIMES
    )
    words = f"{scale(actual)}, that of its {peers} {scale(theirs)}"
    if multiple:
        words = f"{number(actual / theirs, digits=2)} × that of its {peers}"
    if facts.context.get("early"):
        return f"{words}, since it began to send"
    if abs(expected - theirs) <= _EQUAL * max(abs(theirs), _SMALL * abs(actual)):
        return f"{words}, which it used to equal"
    return f"{words}; {scale(expected)} would be as before"
