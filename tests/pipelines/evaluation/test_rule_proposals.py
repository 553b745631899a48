"""What labels propose: the best of all combinations, never a rule that removes a true alarm, and a planted pattern."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from engine.spec.duration import epoch_ms
from pipelines.cli.rule_trial import command, proposal_lines
from pipelines.contracts.records import Rule
from pipelines.contracts.week_times import DAYS
from pipelines.evaluation.comparison.verdicts import SCHEMA
from pipelines.evaluation.rule_proposals.proposals import Proposals, proposals
from pipelines.evaluation.rule_proposals.rows import Rows
from pipelines.evaluation.rule_proposals.search import EXCUSE, OTHERS, search
from pipelines.evaluation.rule_proposals.traits import LEAST, traits_of
from pipelines.evaluation.rule_trial.stored import Stored
from pipelines.evaluation.truth import Span
from pipelines.jobs.detectors.rules_in_force import RuleInForce

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
T0 = epoch_ms("2026-11-02")  # a Monday
END = T0 + 30 * DAY
Alarm = dict[str, Any]


def alarm(entity: str, metric: str, at: int, label: str = "other", actual: float = 9.0, typical: float = 5.0) -> Alarm:
    return {"entity": entity, "metric": metric, "window_start": T0 + at, "label": label, "actual": actual,
            "typical": typical}  # fmt: skip


def proposed(alarms: list[Alarm], *rules: RuleInForce, timezone: str = "UTC") -> Proposals:
    """What is proposed if each alarm is one window of a minute."""
    verdicts = [
        dict.fromkeys(SCHEMA) | {name: it[name] for name in ("entity", "metric", "window_start", "actual", "typical")}
        | {"window_end": it["window_start"] + MINUTE, "kind": "anomaly", "record_score": 50.0, "revision": 0}
        for it in alarms
    ]  # fmt: skip
    spans = [
        Span(it["entity"], (it["metric"],), it["window_start"], it["window_start"], wrong=it["label"] == "true")
        for it in alarms if it["label"] != "other"
    ]  # fmt: skip
    stored = Stored(pl.DataFrame(verdicts, SCHEMA).sort("entity", "metric", "window_end"), [], T0, None, False)
    return proposals(T0, END, stored, rules, spans, END, timezone)


def holds(fields: dict[str, Any], it: Alarm) -> bool:
    """Whether a rule with these fields removes an alarm of one window, as docs/rules.md says it, one by one."""
    for name in ("entity", "metric"):
        glob = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in fields.get(name, "*"))
        if not re.fullmatch(glob, it[name], re.DOTALL):
            return False
    change, zone = it["actual"] - it["typical"], ZoneInfo(fields.get("timezone", "UTC"))
    local = datetime.fromtimestamp(it["window_start"] / 1000, UTC).astimezone(zone)
    if fields.get("times") and not within(fields["times"], local):
        return False
    sizes = {
        "below": lambda bound: it["actual"] < bound,
        "only": lambda side: change < 0 if side == "up" else change > 0,
        "min_change": lambda least: abs(change) < least,
        "min_change_share": lambda least: abs(change) < least * abs(it["typical"]),
    }
    return all(removes(fields[name]) for name, removes in sizes.items() if name in fields)


def within(text: str, local: datetime) -> bool:
    days, hours = re.fullmatch(r"([a-z-]*) ?([0-9:-]*)", text).groups()  # type: ignore[union-attr]
    first, _, last = days.partition("-")
    wanted = range(7) if not days else range(DAYS.index(first), DAYS.index(last or first) + 1)
    if not hours:
        return local.weekday() in wanted
    begin, end = (int(part[:2]) for part in hours.split("-"))
    length = (end - begin) % 24
    return any(
        (local.hour - begin) % 24 < length and (local.weekday() - (local.hour < begin)) % 7 == day for day in wanted
    )


def rows_of(alarms: list[Alarm]) -> Rows:
    return Rows(pl.DataFrame(alarms).with_row_index("alarm"))


def small(seed: int) -> list[Alarm]:
    rng = np.random.default_rng(seed)
    names, metrics = ["lab-1", "lab-2", "web-1", "a*b"], ["net.in", "net.out", "disk{path=/}", "disk{dev=a,path=/x}"]
    return [
        alarm(
            str(rng.choice(names)), str(rng.choice(metrics)), (int(rng.integers(0, 14 * 24)) * 3 + n) * 10 * MINUTE,
            str(rng.choice(["false_alarm", "true", "other"], p=[0.5, 0.2, 0.3])), float(rng.choice([1, 5, 40, 300])),
            float(rng.choice([4.0, 30.0])),
        )
        for n in range(26)
    ]  # fmt: skip


@cache
def share(times: str) -> float:
    """The share of the week."""
    hours = [datetime.fromtimestamp((T0 + hour * HOUR) / 1000, UTC) for hour in range(168)]
    return sum(within(times, hour) for hour in hours) / 168


def no_reason(fields: dict[str, Any], days: int) -> bool:
    """Whether alarms on some days may well have a time of the week or a direction in common by chance, or a size."""
    if "times" in fields:
        return bool(share(fields["times"]) ** (days - 1) >= 0.001)
    return 0.5 ** (days - 1) >= 0.001 if "only" in fields else bool(fields)


@pytest.mark.parametrize("seed", range(12))
def test_no_combination_of_conditions_is_worth_more_than_what_is_found(seed: int) -> None:
    alarms = small(seed)
    rows = rows_of(alarms)
    traits = traits_of(rows, "Europe/Stockholm")
    found = search(traits, rows.days())
    false, true, others = (
        {n for n, it in enumerate(alarms) if it["label"] == label} for label in ("false_alarm", "true", "other")
    )
    kinds = (traits.machines, traits.metrics, traits.times, traits.effects)
    held = [
        [(dict(trait.fields), {n for n, it in enumerate(alarms) if holds(dict(trait.fields), it)}) for trait in some]
        for some in kinds
    ]
    left, worth = set(false), []

    def value(removed: set[int], times: dict[str, Any], effect: dict[str, Any]) -> int:
        days = {alarms[n]["window_start"] // DAY for n in removed & left}
        excuses = sum(no_reason(fields, len(days)) for fields in (times, effect))
        return OTHERS * len(removed & left) - len(removed & others) - EXCUSE * excuses

    for best in found.found:
        values = [
            value(removed, times, effect)
            for (machine, a), (metric, b) in product(held[0], held[1])
            if machine or metric
            for (times, c), (effect, d) in product(held[2], held[3])
            if len((removed := a & b & c & d) & left) >= LEAST and not removed & true
        ]
        removed = {n for n, it in enumerate(alarms) if holds(best.fields, it)}
        assert not removed & true
        worth.append(value(removed, dict(best.times.fields), dict(best.effect.fields)))
        assert worth[-1] == max(values) > 0
        left -= removed
    assert found.complete
    assert worth == sorted(worth, reverse=True)


def planted(seed: int) -> list[Alarm]:
    """False alarms of the network of lab machines from two to three, and others that have all of it but one."""
    rng = np.random.default_rng(seed)

    def some(count: int, label: str, machine: str, metrics: list[str], hours: tuple[int, int]) -> list[Alarm]:
        days = rng.permutation(28)[:count]
        return [
            alarm(
                f"{machine}-{n % 4 + 1}", metrics[n % len(metrics)],
                int(day) * DAY + int(rng.integers(hours[0] * 60, hours[1] * 60)) * MINUTE, label,
                float(rng.uniform(-50, 60)),
            )
            for n, day in enumerate(days)
        ]  # fmt: skip

    net, rest = ["net.in", "net.out"], ["cpu", "disk.used{path=/}"]
    return [
        *some(14, "false_alarm", "lab", net, (2, 3)), *some(5, "true", "lab", net, (3, 24)),
        *some(5, "true", "lab", net, (0, 2)), *some(5, "true", "web", net, (2, 3)),
        *some(5, "true", "lab", rest, (2, 3)), *some(20, "other", "web", rest, (0, 24)),
        *(alarm("lab-1", "net.in", day * DAY + 2 * HOUR, actual=6.0) for day in (28, 29)),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_what_false_alarms_have_in_common_and_no_true_one_has_is_found_and_tried(seed: int) -> None:
    alarms = planted(seed)
    found = proposed(alarms)
    (first,) = found.found
    rule = first.rule
    assert (rule.entity, rule.metric, rule.times, rule.skip_result) == ("lab-*", "net.*", "02:00-03:00", True)
    assert first.words == ("these 14 false alarms have this in common: metric net.*; machines lab-*; 02:00-03:00 UTC")
    removed = first.trial.figures()["removed"]
    assert (removed["alarms"], removed["false_alarms"], removed["true_alarms"]) == (16, 14, 0)
    assert (found.false, found.true, found.complete) == (14, 20, True)
    assert command(rule).startswith("newnormal rule add 'less metric net.*, machines lab-*, 02:00-03:00 UTC' --entity")
    assert any("0 true alarms lost, 14 false alarms spared" in line for line in proposal_lines(found))
    assert proposed(alarms[::-1]).figures() == found.figures()
    assert proposed(alarms, RuleInForce(rule, T0, END + DAY)).found == [], "a rule in force is not proposed again"
    begun = RuleInForce(rule, END - MINUTE, END + DAY)
    assert proposed(alarms, begun).found == [], "also if it was not yet in force then"


def test_times_are_those_of_the_time_zone_of_the_detector() -> None:
    (first,) = proposed(planted(1), timezone="Asia/Tokyo").found
    assert (first.rule.times, first.rule.timezone) == ("11:00-12:00", "Asia/Tokyo")


def test_an_alarm_is_removed_only_if_each_of_its_windows_is_and_no_window_of_a_true_one_may_be() -> None:
    false = [alarm("a", "cpu", n * DAY, "false_alarm") | {"alarm": n} for n in range(4)]
    longer = [alarm("a", "cpu", 3 * DAY + MINUTE, "false_alarm", actual=1.0) | {"alarm": 3}]
    true = [alarm("a", "cpu", 9 * DAY + n * MINUTE, "true", actual=(1.0, 9.0)[n]) | {"alarm": 4} for n in (0, 1)]

    def best(*rows: Alarm) -> list[dict[str, object]]:
        found = Rows(pl.DataFrame(rows))
        return [it.fields for it in search(traits_of(found, "UTC"), found.days()).found]

    assert len(best(*false, *longer)) == 1
    assert {"only": "down"}.items() <= best(*false, *longer, true[0])[0].items()
    assert not any("only" in fields for fields in best(*false, *longer, *true))


def test_a_limit_on_the_size_is_proposed_where_it_spares_other_alarms() -> None:
    small = [alarm("db-1", "queue", n * DAY + 5 * HOUR * n, "false_alarm", 5.0 + 0.1 * n) for n in range(5)]
    large = [alarm("db-1", "queue", n * DAY + HOUR + 5 * HOUR * n, "true", 50.0 + n) for n in range(3)]
    (first,) = proposed([*small, *large]).found
    assert first.rule.entity == "db-1" and first.rule.metric == "queue"
    bounds = (first.rule.min_change, first.rule.min_change_share, first.rule.below)
    assert sum(each is not None for each in bounds) == 1
    (plain,) = proposed([it | {"window_start": it["window_start"]} for it in small]).found
    assert plain.rule.model_dump(exclude={"id", "note"}) == Rule(
        id="x", time=T0, entity="db-1", metric="queue", skip_result=True
    ).model_dump(exclude={"id", "note"}), "without a reason there is no limit, and no time of the week"


def test_a_tag_that_false_alarms_share_is_found() -> None:
    def disk(host: int, path: str, at: int, label: str) -> Alarm:
        return alarm(f"h{host}x", f"disk.{'used' if at % 2 else 'free'}{{dev=sd{host},path={path}}}", at * DAY, label)

    false = [disk(n, "/tmp", n, "false_alarm") for n in range(6)]
    true = [disk(n, path, n + 7, "true") for n in range(6) for path in ("/", "/tmp2", "/var/tmp")]
    (first,) = proposed([*false, *true]).found
    assert first.rule.metric == "*,path=/tmp}"


@pytest.mark.parametrize("labels", [[], ["false_alarm"] * 2, ["true"] * 9, ["other"] * 9])
def test_too_few_labels_propose_nothing(labels: list[str]) -> None:
    found = proposed([alarm("a", "cpu", n * DAY, label) for n, label in enumerate([*labels, "other"])])
    assert found.found == [] and found.complete
    assert any(line.startswith("no proposal") for line in proposal_lines(found))


def test_alarms_without_a_label_count_against_a_rule() -> None:
    false = [alarm("a", "cpu", n * DAY, "false_alarm") for n in range(3)]
    others = [alarm("a", "cpu", n * DAY + HOUR * (n % 24)) for n in range(3, 15)]
    assert proposed([*false, *others[:11]]).found
    assert not [each for each in proposed([*false, *others]).found if not each.rule.times]


def test_the_work_is_bounded_by_steps_and_what_was_cut_short_says_so() -> None:
    rows = rows_of(planted(3))
    traits = traits_of(rows, "UTC")
    cut = search(traits, rows.days(), steps=500)
    assert not cut.complete and search(traits, rows.days(), steps=500) == cut
    assert all(not best.cover.true for best in cut.found)
