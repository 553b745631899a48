"""Which versions of rules are in force when: what operators say later replaces what they said before.

A newer version replaces an older one that is in force already from its own start on. An older one that has not begun
when the newer one is given was a plan, and never comes into force: a maintenance that is postponed mutes nothing at its
first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.spec.duration import END_OF_TIME
from pipelines.contracts.records import Rule


@dataclass(frozen=True)
class RuleInForce:
    """A version of a rule, which is in force from ``start`` until before ``end``, epoch milliseconds."""

    rule: Rule
    start: int
    end: int


def begins(rule: Rule) -> int:
    """When a version of a rule comes into force, epoch milliseconds; not before it was given."""
    return rule.time if rule.start is None else max(rule.time, rule.start)


def standing(
    versions: Iterable[tuple[int, Rule]], time_of: Callable[[Rule], int] = lambda rule: rule.time
) -> list[RuleInForce]:
    """The versions that no newer one has replaced before they began, also those that withdraw a rule.

    Args:
        versions: Versions of rules, each with the instant from which on it is in force, epoch milliseconds.
        time_of: When a version was given, epoch milliseconds.

    Returns:
        Each with the time in which it is in force, sorted by name of the rule and from the newest to the oldest.
    """
    in_force: list[RuleInForce] = []
    newer: list[RuleInForce] = []
    for start, rule in sorted(versions, key=lambda v: (v[1].id, v[1].time, v[1].to_json()), reverse=True):
        newer = [each for each in newer if each.rule.id == rule.id]
        if any(start > time_of(each.rule) for each in newer):
            continue
        end = min([END_OF_TIME if rule.end is None else rule.end, *(each.start for each in newer)])
        newer.append(RuleInForce(rule, start, end))
        in_force.append(newer[-1])
    return in_force
