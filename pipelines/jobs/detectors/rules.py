"""Which windows the rules in force apply to, and how they change the verdicts; vectorised over windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from models.numbers.arrays import Array, Flags, Ints
from pipelines.contracts.globs import matches
from pipelines.contracts.records import Rule
from pipelines.contracts.records.novelty import PEERS, QUIET_KINDS, UNTIL_FULL
from pipelines.contracts.week_times import are_within
from pipelines.jobs.detectors.rules_in_force import RuleInForce

_NO_ALARM = (*QUIET_KINDS, "recovered")
_OF_NEWS = ("experts", "expected", "context", "actuals", "typicals", "suggested")
"""Columns that only news have, see `pipelines.contracts.records.Novelty`."""


@dataclass(frozen=True)
class Effects:
    """The effects of the rules on each of n windows.

    Args:
        skip_learning: True where the models do not learn from the window, shape (n,).
        day_off: True where the window is treated as one of a weekend, shape (n,).
        concerned: For each rule, flags of the windows to which it applies, shape (n,).
    """

    skip_learning: Flags
    day_off: Flags
    concerned: Sequence[tuple[Rule, Flags]]

    def part(self, rows: slice | Ints) -> Effects:
        """The effects on some of the windows."""
        return Effects(
            self.skip_learning[rows], self.day_off[rows], [(rule, who[rows]) for rule, who in self.concerned]
        )

    def muted(self, value: Array, typical: Array) -> Flags:
        """Flags the windows that are not reported because of a rule, shape (n,).

        Args:
            value: The value of each window, shape (n,).
            typical: The typical value of each, shape (n,).
        """
        skipped, mute, forced = np.zeros((3, len(value)), np.bool_)
        for rule, concerned in self.concerned:
            skipped |= concerned & rule.skip_result
            mute |= concerned & withheld(rule, value, typical)
            forced |= concerned & rule.report
        return skipped | (mute & ~forced)

    def reported(self, muted: Flags) -> Flags:
        """Flags the windows that a rule has reported whatever their score, shape (n,).

        Args:
            muted: Flags as from `muted`, shape (n,).
        """
        forced = np.zeros(len(muted), np.bool_)
        for rule, concerned in self.concerned:
            forced |= concerned & rule.report
        return forced & ~muted

    def reporters(self, reported: Flags) -> list[list[str] | None]:
        """For each window the ids of the rules that have it reported; ``None`` if there are none."""
        return _ids(len(reported), ((rule, concerned & reported & rule.report) for rule, concerned in self.concerned))

    def names(self, muted: Flags, value: Array, typical: Array) -> list[list[str] | None]:
        """For each window the ids of the rules that changed its verdict or apply to any value; ``None`` without any."""

        def changed(rule: Rule) -> Flags | bool:
            always = rule.skip_result or rule.skip_learning or rule.report or rule.weekend or rule.store
            return always or muted & withheld(rule, value, typical)

        return _ids(len(muted), ((rule, concerned & changed(rule)) for rule, concerned in self.concerned))


def _ids(n: int, rules: Iterable[tuple[Rule, Flags]]) -> list[list[str] | None]:
    """For each of n windows the ids of the rules that flag it; ``None`` if there are none."""
    ids: list[list[str] | None] = [None] * n
    for rule, flags in rules:
        for row in np.flatnonzero(flags).tolist():
            ids[row] = [*(ids[row] or []), rule.id]
    return ids


def withheld(rule: Rule, value: Array, typical: Array) -> Flags:
    """Flags values that a rule does not report: too near the typical value, or on the wrong side of it, shape (n,)."""
    change = value - typical
    is_known = np.isfinite(change)
    change = np.where(is_known, change, 0.0)
    held = np.zeros(len(value), np.bool_)
    if rule.only is not None:
        held |= (change if rule.only == "up" else -change) < 0
    if rule.min_change is not None:
        held |= np.abs(change) < rule.min_change
    if rule.min_change_share is not None:
        held |= np.abs(change) < rule.min_change_share * np.abs(np.where(is_known, typical, 0.0))
    return held & is_known


def effects(rules: Sequence[RuleInForce], frame: pl.DataFrame) -> Effects | None:
    """The effects of rules on the windows of a frame; ``None`` if no rule applies to any of them.

    A rule applies to windows that overlap the time in which it is in force and match its globs, dates and values.

    Args:
        rules: The rules, with the times in which they are in force.
        frame: Columns ``entity``, ``metric``, ``window_start``, ``window_end`` (epoch milliseconds), ``value``.
    """
    if not rules or not frame.height:
        return None
    start, end = frame["window_start"].to_numpy(), frame["window_end"].to_numpy()
    applying: list[tuple[Rule, Flags]] = []
    for version in rules:
        concerned = (start < version.end) & ((end > version.start) | (start >= version.start))
        if concerned.any():
            concerned = concerned & _concerned(version.rule, frame)
        if concerned.any():
            applying.append((version.rule, concerned))
    if not applying:
        return None
    skip_learning, day_off = np.zeros((2, frame.height), np.bool_)
    for rule, concerned in applying:
        skip_learning |= concerned & rule.skip_learning
        day_off |= concerned & rule.weekend
    return Effects(skip_learning, day_off, applying)


def applied(rules: Sequence[RuleInForce], verdicts: pl.DataFrame) -> pl.DataFrame:
    """Applies rules to verdicts, and fills in the columns ``rules`` and ``reported_by``.

    A verdict that a rule mutes becomes normal, with scores of 0 and without the figures that only news have. A verdict
    that a rule has reported becomes an anomaly if it is no news or a recovery; other news keeps its kind.

    Args:
        rules: The rules, with the times in which they are in force.
        verdicts: Columns of `Novelty`.
    """
    effect = effects(rules, verdicts.with_columns(value="actual"))
    if effect is None:
        return verdicts
    actual, typical = (verdicts[name].fill_null(float("nan")).to_numpy() for name in ("actual", "typical"))
    muted = effect.muted(actual, typical)
    reported = effect.reported(muted)
    mute, report = pl.Series(muted), pl.Series(reported)
    silent = mute & (pl.col("incident_state") != "closed").fill_null(True)  # the end of an incident is still reported
    scores = [name for name in ("record_score", "state_score") if name in verdicts.columns]
    of_news = [pl.when(~mute).then(name).alias(name) for name in _OF_NEWS if name in verdicts.columns]
    kind = pl.when(mute & (pl.col("kind") != "learning")).then(pl.lit("normal")).otherwise("kind")
    since = pl.when(report & pl.col("since").is_null()).then("window_start").otherwise("since")
    return verdicts.with_columns(
        *of_news,
        *(pl.when(mute).then(0.0).otherwise(name).alias(name) for name in scores),
        kind=pl.when(report & pl.col("kind").is_in(_NO_ALARM)).then(pl.lit("anomaly")).otherwise(kind),
        probability=pl.when(mute).then(1.0).otherwise("probability"),
        since=pl.when(silent).then(None).otherwise(since),
        incident_state=pl.when(silent).then(None).otherwise("incident_state"),
        decided=pl.when(mute).then(None).otherwise("decided"),
        rules=pl.Series(effect.names(muted, actual, typical), dtype=pl.List(pl.String)),
        reported_by=pl.Series(effect.reporters(reported), dtype=pl.List(pl.String)),
    )


def stored(rules: Sequence[RuleInForce], verdicts: pl.DataFrame) -> Flags:
    """Flags the verdicts that are written because of a rule, although all may be well, shape (n,).

    Args:
        rules: The rules, with the times in which they are in force.
        verdicts: Columns of `Novelty`.
    """
    flags = np.zeros(verdicts.height, np.bool_)
    rules = [each for each in rules if each.rule.store]
    effect = effects(rules, verdicts.with_columns(value="actual")) if rules else None
    for _, concerned in effect.concerned if effect else ():
        flags |= concerned
    return flags


def are_of(rule: Rule, metrics: pl.Series) -> Flags:
    """Flags the metrics that a rule is about; one about a metric is also about when that is full, shape (n,)."""
    return matches(rule.metric, metrics) | matches(rule.metric, metrics.cast(pl.String).str.strip_suffix(UNTIL_FULL))


def _concerned(rule: Rule, frame: pl.DataFrame) -> Flags:
    concerned = matches(rule.entity, frame["entity"]) & are_of(rule, frame["metric"])
    if rule.report and not rule.skip_result:  # values have limits, what follows from them has none
        name = frame["metric"].cast(pl.String)
        concerned &= ~(name.str.starts_with(PEERS) | name.str.ends_with(UNTIL_FULL)).to_numpy()
    value = frame["value"].fill_null(float("nan")).to_numpy()
    if rule.above is not None:
        concerned &= value > rule.above
    if rule.below is not None:
        concerned &= value < rule.below
    if rule.dates:
        local = frame["window_start"].cast(pl.Datetime("ms", "UTC")).dt.convert_time_zone(rule.timezone)
        concerned &= local.dt.strftime("%Y-%m-%d").is_in(rule.dates).to_numpy()
    if rule.times:
        concerned &= are_within(rule.times, rule.timezone, frame["window_start"])
    return concerned
