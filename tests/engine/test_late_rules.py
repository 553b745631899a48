"""Broadcast as its users write it: without a late topic of their own, with rules that come when they come."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Broadcast, Instant, Job, Record, Stream
from engine.testing import RESTART, TestStream, run
from tests.engine.readings import T0


class Sample(Record):
    """A value of a host."""

    time: Instant
    host: str
    v: float


class Rule(Record):
    """A limit for all hosts."""

    time: Instant
    rule: str
    limit: float


def alerts() -> Job:
    rules = Stream.read_json("rules", Rule)
    samples = Stream.read_json("samples", Sample).key_by("host")
    return samples.join(rules, Broadcast(identity=("rule",), where='v > "limit"')).write("alerts")


def samples(*seconds: float) -> list[dict[str, Any]]:
    return [{"time": T0 + int(s * 1000), "host": f"h{int(s) % 3}", "v": 50.0} for s in seconds]


def rule(second: float, limit: float) -> dict[str, Any]:
    return {"time": T0 + int(second * 1000), "rule": "hot", "limit": limit}


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_rule_that_comes_behind_the_watermark_applies_to_what_comes_after_it(shards: int, on: str) -> None:
    """The boundary: 0.1 s behind the watermark the rule was late and never took effect."""
    stream = (
        TestStream(T0, topics=("samples", "rules")).add(*samples(1, 2, 3), topic="samples").advance_watermark("39s")
    )
    stream = stream.add(rule(38.9, 10.0), RESTART, topic="rules").add(*samples(40, 41), topic="samples")
    found = run(alerts(), stream.advance_watermark("50s"), on=on, shards=shards)
    assert sorted((r["left_time"] - T0) / 1000 for r in found.rows) == [40, 41]
    assert not found.late


@pytest.mark.parametrize("on", ["reference", "operator"])
def test_an_older_rule_that_comes_later_does_not_replace_a_newer_one(on: str) -> None:
    stream = TestStream(T0, topics=("samples", "rules")).add(rule(5, 99.0), topic="rules").advance_watermark("10s")
    stream = stream.add(rule(4, 10.0), topic="rules").add(*samples(11, 12), topic="samples").advance_watermark("20s")
    assert not run(alerts(), stream, on=on).rows


@pytest.mark.parametrize("on", ["reference", "operator"])
def test_a_join_by_a_column_that_the_key_has_not_needs_no_late_topic_of_its_own(on: str) -> None:
    class Order(Record):
        time: Instant
        order: str
        currency: str

    class RateOf(Record):
        time: Instant
        currency: str
        rate: float

    how = Broadcast(identity=("currency",), on=("currency",))
    job = Stream.read_json("orders", Order).key_by("order").join(Stream.read_json("rates", RateOf), how).write("eur")
    stream = TestStream(T0, topics=("orders", "rates"))
    stream = stream.add({"time": T0 + 1000, "currency": "SEK", "rate": 0.09}, topic="rates").advance_watermark("1500ms")
    orders = [{"time": T0 + s * 1000, "order": "a", "currency": "SEK"} for s in (1, 2)]
    found = run(job, stream.add(*orders, topic="orders").advance_watermark("9s"), on=on)
    assert [r["rate"] for r in found.rows] == [0.09]
    assert [r["order"] for r in found.late] == ["a"]
