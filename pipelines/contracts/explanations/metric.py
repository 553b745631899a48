"""The sentences of a verdict on one metric of one machine, by the kind of novelty."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.contracts.explanations.facts import Facts
from pipelines.contracts.explanations.full import will_be_full
from pipelines.contracts.quantities.words import Scale, duration, listed
from pipelines.contracts.records.novelty import UNTIL_FULL

_FEW, _MANY = 30, 100
"""With fewer values than the first, the text says that little is known; from the second on it mentions records."""

_DAY = 86_400_000
_RUN = 8
"""This many values in a row on one side of the typical value are called a run; chance makes one in 128."""

_SUDDEN = 4.0
"""From this many nats of evidence on a step is called sudden; about one step in fifty has as much."""

_NEAR = 0.1
"""A value outside its band by up to this share of the band's width is "just outside"; by more than 1, "far outside"."""


def sentences(facts: Facts) -> list[str]:
    """The sentences on a metric; those that do not apply are empty."""
    return _BY_KIND.get(facts.kind, _anomaly)(facts)


def _value_and_usual(facts: Facts) -> str:
    actual = facts.number("actual")
    if actual is None:
        return f"{_subject(facts)} has no value."
    scale = Scale(None, facts.scale.kind, metric=facts.metric) if _frozen(facts) else facts.scale
    value, beside = f"{_subject(facts)} is {scale(actual)}", usual(facts)
    return f"{value}; {beside}." if beside else f"{value}."


def usual(facts: Facts) -> str:
    """A phrase such as "usual: 95 to 108"; empty if no usual value is known."""
    typical, context = facts.number("typical"), facts.context
    if typical is None:
        return ""
    low, high = context.get("lowest"), context.get("highest")
    if low is not None and low == high and context.get("values", 0) >= _FEW:
        return f"until now it was always {facts.scale(low)}"
    at_this_time = " at this time" if _by_the_hour(facts) else ""
    if facts.band is None:
        return f"usual{at_this_time}: about {facts.scale(typical)}"
    return f"usual{at_this_time}: {facts.scale.span(*facts.band)}"


def _by_the_hour(facts: Facts) -> bool:
    """True if the expected value mainly follows what was usual at this hour on earlier days."""
    experts, expected = facts.novelty.get("experts") or {}, facts.novelty.get("expected") or {}
    return expected.get("hour") is not None and (experts.get("hour") or 0.0) >= 0.5


def _subject(facts: Facts) -> str:
    return f"{facts.metric} of {facts.entity}"


def _anomaly(facts: Facts) -> list[str]:
    first = facts.by_rule() + _value_and_usual(facts)
    reported = bool(facts.by_rule())
    how, timed = ("", False) if facts.number("actual") is None else _how(facts, reported=reported)
    return [first, how, "" if timed else facts.since, _young(facts)]


def _how(facts: Facts, *, reported: bool) -> tuple[str, bool]:
    """Returns a sentence that says how unusual the value is, and whether that sentence also says since when."""
    frozen = _frozen(facts)
    if frozen:
        return frozen, True
    outside = _outside(facts)
    if not outside:
        return _inside(facts, reported=reported)
    parts = [outside, *_sudden(facts), *_record(facts)]
    return ", ".join(parts) + ".", False


def _outside(facts: Facts) -> str:
    actual = facts.number("actual")
    if facts.band is None or actual is None:
        return ""
    lower, upper = facts.band
    excess, width = max(actual - upper, lower - actual), upper - lower
    if excess <= 0:
        return ""
    if width <= 0:
        return "Outside" if excess < abs(upper) else "Far outside"
    return "Just outside" if excess <= _NEAR * width else "Far outside" if excess > width else "Outside"


def _sudden(facts: Facts) -> list[str]:
    begins = facts.novelty.get("since") == facts.novelty.get("window_start")
    return ["sudden"] if begins and facts.evidence.get("change", 0.0) >= _SUDDEN else []


def _record(facts: Facts) -> list[str]:
    """A phrase saying that the value is the highest or lowest so far, with the time watched if less than a day."""
    actual, context = facts.number("actual"), facts.context
    low, high = context.get("lowest"), context.get("highest")
    if actual is None or low is None or high is None or context.get("values", 0) < _MANY:
        return []
    name = "highest" if actual > high else "lowest" if actual < low else ""
    if not name:
        return []
    watched = context.get("watched", 0.0)
    return [
        f"the {name} ever seen" if watched >= _DAY else f"the {name} in the {duration(watched)} it has been watched"
    ]


def _inside(facts: Facts, *, reported: bool) -> tuple[str, bool]:
    """Returns a sentence that says why a value inside its band is unusual, and whether it also says since when."""
    run, banded = facts.context.get("run", 0.0), facts.band is not None
    if abs(run) >= _RUN:
        side = "high" if run > 0 else "low"
        lasting = duration(facts.context.get("run_for", 0.0) + facts.window, short=False)
        if not banded:
            return f"For {lasting} all values have been {side}.", True
        if facts.context.get("ordinary"):
            return f"Each value is ordinary, but for {lasting} all have been {side}.", True
        return f"For {lasting} all values have been {side}, some of them outside of what is usual.", True
    parts = [*_sudden(facts), *_record(facts)]
    if parts:
        how = listed(parts)
        return f"Ordinary by itself, but {how}." if banded else f"{how[0].upper()}{how[1:]}.", False
    if reported:
        return "The value is ordinary; only the rule reports it.", False
    return "Ordinary by itself, but not together with the values before it." if banded else "", False


def _frozen(facts: Facts) -> str:
    """A sentence saying that the value is stuck; empty unless the incident began with the first of the equal values."""
    same_for, lasted = facts.context.get("same_for"), facts.lasted
    if not same_for or same_for != lasted or facts.evidence.get("frozen", 0.0) <= 0:
        return ""
    lasting = duration(same_for + facts.window, short=False)
    return f"It has been exactly the same for {lasting}, where it used to vary. {facts.since}"


def _young(facts: Facts) -> str:
    values, watched = facts.context.get("values"), facts.context.get("watched", 0.0)
    if values is None or values + facts.context.get("inherited", 0.0) >= _FEW:
        return ""
    return f"Little is known of it yet: {values:.0f} values in {duration(watched)}."


def _change(facts: Facts) -> list[str]:
    before, level = facts.context.get("before"), facts.context.get("level")
    subject = _subject(facts)
    if before is None or level is None:
        stays = f"It has changed{facts.from_onset}, and stays so."
        return [_value_and_usual(facts), stays, "If it goes on, that becomes the new normal."]
    scale = Scale(before - level, facts.scale.kind, max(abs(before), abs(level)), facts.metric)
    lasting = f", for {duration(facts.lasted)}" if facts.lasted else ""
    moved = (
        f"{subject} has been at about {scale(level)}{facts.from_onset}{lasting}; before, it was about {scale(before)}."
    )
    return [moved, "If it stays there, that becomes the new normal."]


def _new_normal(facts: Facts) -> list[str]:
    before, level = facts.context.get("before"), facts.context.get("level")
    subject = _subject(facts)
    if before is None or level is None:
        return [_value_and_usual(facts), "Such values count as usual from now on.", facts.since]
    scale = Scale(before - level, facts.scale.kind, max(abs(before), abs(level)), facts.metric)
    if facts.context.get("known"):
        return [
            f"{subject} is back at a level that it has had before: about {scale(level)}{facts.from_onset}; "
            f"until then it was about {scale(before)}."
        ]
    return [
        f"{subject} has a new normal: about {scale(level)}{facts.from_onset}; before, it was about {scale(before)}."
    ]


def _absence(facts: Facts) -> list[str]:
    return [f"{_subject(facts)} has sent nothing{facts.from_onset}."]


def _exhaustion(facts: Facts) -> list[str]:
    times = [facts.number(f"full_{name}") for name in ("earliest", "latest")]
    earliest, latest = (None if time is None else int(time) for time in times)
    said = int(facts.number("@timestamp") or 0)
    subject = _subject(facts).replace(UNTIL_FULL, "")
    actual = facts.number("actual")
    now = "" if actual is None else f"It is at {facts.scale(actual)}."
    return [f"{subject} {will_be_full(said, earliest, latest, None, facts.zone)}.", now]


def _recovered(facts: Facts) -> list[str]:
    subject, actual, typical = _subject(facts), facts.number("actual"), facts.number("typical")
    if UNTIL_FULL in subject:
        return [f"{subject.replace(UNTIL_FULL, '')} has room again, or fills more slowly."]
    what = "sends again" if facts.context.get("absent") else "is normal again"
    recovery = f"{subject} {what}{facts.after()}"
    if actual is None or typical is None:
        return [f"{recovery}."]
    return [f"{recovery}: {facts.scale(actual)}, usual {facts.scale(typical)}."]


def _quiet(facts: Facts) -> list[str]:
    if facts.metric.endswith(UNTIL_FULL):
        subject = _subject(facts).replace(UNTIL_FULL, "")
        return [f"{subject} has another bound, or none, since settings were changed.", facts.course()]
    learning = "What is usual is still being learned." if facts.kind == "learning" else ""
    return [_value_and_usual(facts), learning, facts.course()]


_BY_KIND: dict[str, Callable[[Facts], list[str]]] = {
    "anomaly": _anomaly,
    "state_change": _change,
    "new_normal": _new_normal,
    "absence": _absence,
    "exhaustion": _exhaustion,
    "recovered": _recovered,
    "normal": _quiet,
    "learning": _quiet,
}
