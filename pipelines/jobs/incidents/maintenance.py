"""Maintenance of a whole site: rules that mute everything mute the silence of inputs, too."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from engine.spec.duration import END_OF_TIME
from pipelines.contracts.records import Rule
from pipelines.contracts.week_times import are_within
from pipelines.jobs.detectors.rules_in_force import RuleInForce, begins, standing

_ALL = "*"
_MINUTE, _WEEK = 60_000, 7 * 86_400_000


def muting(rule: Rule) -> bool:
    """True if a version of a rule mutes all machines and metrics, whatever their values.

    >>> muting(Rule(id="a", time=0, skip_result=True)), muting(Rule(id="a", time=0, skip_result=True, entity="web-*"))
    (True, False)
    """
    everything = (rule.entity, rule.metric, rule.above, rule.below) == (_ALL, _ALL, None, None)
    return rule.active and rule.skip_result and everything


def opens_at(noticed: int, rules: Iterable[Rule]) -> int:
    """When a silence that was noticed at an instant becomes an incident: at once, or when the maintenance is over.

    Args:
        noticed: When it was noticed, epoch milliseconds.
        rules: All versions of the rules that mute, or once muted, the whole site.

    Returns:
        Epoch milliseconds; `END_OF_TIME` if a rule without an end mutes it.

    >>> opens_at(5, [Rule(id="a", time=0, end=9, skip_result=True)]), opens_at(9, [])
    (9, 9)
    """
    in_force = [version for version in standing((begins(rule), rule) for rule in rules) if muting(version.rule)]
    at = noticed
    while at < END_OF_TIME:
        ends = [end for version in in_force if version.start <= at < version.end and (end := _end(version, at)) > at]
        if not ends:
            return at
        at = max(ends)
    return END_OF_TIME


def _end(version: RuleInForce, at: int) -> int:
    """When a rule in force at an instant no longer mutes; that instant if it does not apply then."""
    rule, zone = version.rule, ZoneInfo(version.rule.timezone)
    end = version.end
    if rule.dates:
        day = datetime.fromtimestamp(at / 1000, zone)
        if day.date().isoformat() not in rule.dates:
            return at
        following = datetime.combine(day.date() + timedelta(days=1), datetime.min.time(), zone)
        end = min(end, int(following.timestamp() * 1000))
    if rule.times:
        minutes = pl.Series([at, *range(at - at % _MINUTE + _MINUTE, at + _WEEK, _MINUTE)])
        over = np.flatnonzero(~are_within(rule.times, rule.timezone, minutes))
        end = min(end, minutes[int(over[0])]) if over.size else end  # none: they are the whole week
    return end
