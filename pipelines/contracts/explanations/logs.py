"""The sentences of a verdict on a machine's log."""

from __future__ import annotations

from pipelines.contracts.explanations.facts import Facts, ranked
from pipelines.contracts.explanations.metric import usual
from pipelines.contracts.quantities.words import duration

_LEAST = 1.0
"""A channel with less evidence than this many nats is not named as the reason."""

_SEVERITY = "log.severity."
_SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
"""Names of the syslog severities (RFC 5424); the index is the code."""

_WHY = {
    "unseen": "has a kind of line that it never had before: ",
    "burst": "has more lines of one kind than usual: ",
    "silence": "lacks lines that usually come: ",
    "mix": "has another mix of lines than usual, above all of ",
    "severity": "has another mix of severities than usual, above all of ",
}


def sentences(facts: Facts) -> list[str]:
    """The sentences on a log; those that do not apply are empty."""
    log = f"The log of {facts.entity}"
    since = facts.from_onset
    if facts.kind == "absence":
        expected = f"; usual{_span(facts)}: {facts.scale.span(*facts.band)}" if facts.band else ""
        return [f"{log} has had no line{since}{expected}."]
    if facts.kind == "recovered":
        return [f"{log} is normal again{facts.after()}.", _lines(facts)]
    if facts.kind == "new_normal":
        return [f"{log} has a new normal: its lines{since} count as usual from now on.", _lines(facts)]
    if facts.kind == "state_change":
        return [f"{log} has changed, and stays so.", _why(facts, "It"), _lines(facts), facts.since]
    if facts.quiet:
        learning = "What is usual is still being learned." if facts.kind == "learning" else ""
        return [f"{log}: {_lines(facts)}", learning, facts.course()]
    return [facts.by_rule() + (_why(facts, log) or f"{log} is unusual."), _lines(facts), facts.since]


def _why(facts: Facts, log: str) -> str:
    channel, nats = next(iter(facts.evidence.items()), ("", 0.0))
    if nats < _LEAST or channel not in _WHY:
        return ""
    example = facts.novelty.get("event.original") or facts.novelty.get("log.template")
    what = _severity(facts) if channel == "severity" else f'"{example}"' if example else ""
    reason = _WHY[channel]
    return f"{log} {reason}{what}." if what else f"{log} {reason.partition(':')[0].partition(',')[0]}."


def _severity(facts: Facts) -> str:
    shares = ranked(facts.novelty.get("influencers"))
    code = next((name.removeprefix(_SEVERITY) for name, _ in shares if name.startswith(_SEVERITY)), "")
    return _SEVERITIES[int(code)] if code.isdigit() and int(code) < len(_SEVERITIES) else code


def _lines(facts: Facts) -> str:
    actual = facts.number("actual")
    if actual is None:
        return ""
    lines = f"{facts.scale(actual)} line{'' if actual == 1 else 's'}{_span(facts)}"
    beside = usual(facts)
    return f"{lines}; {beside}." if beside else f"{lines}."


def _span(facts: Facts) -> str:
    return f" in {duration(facts.window)}" if facts.window else ""
