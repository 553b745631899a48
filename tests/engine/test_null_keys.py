"""A null in a key column: one group where records are grouped (GROUP BY), no partner where they are paired (JOIN).

What is expected is counted here from the records alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from engine import (
    AfterCount,
    AfterWatermark,
    Broadcast,
    Calendar,
    Correlation,
    Count,
    CountWindows,
    Deduplicate,
    Discarding,
    Global,
    Instant,
    IntervalJoin,
    KeepLast,
    Rate,
    Record,
    Session,
    Sliding,
    Stream,
    Sum,
    TemporalJoin,
    TopK,
    Tumbling,
    WindowJoin,
)
from engine.testing import RESTART, TestStream, run
from tests.engine.readings import T0

KEYS = [("x", None), ("x", "y"), (None, None), (None, "y")]


class Reading(Record):
    """A reading whose key may be missing in part."""

    time: Instant
    k: str | None = None
    sub: str | None = None
    v: float = 0.0


def reading(key: tuple[str | None, str | None], second: float, v: float = 1.0) -> dict[str, Any]:
    return {"time": T0 + int(second * 1000), "k": key[0], "sub": key[1], "v": v}


def read(topic: str = "t") -> Stream:
    return Stream.read_json(topic, Reading).key_by("k", "sub")


def of_all(second: float, v: float = 1.0) -> list[dict[str, Any]]:
    return [reading(key, second, v) for key in KEYS]


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    "window",
    [Tumbling("10s"), Sliding("10s", every="5s"), Session("9s"), Calendar("day"), Global(), CountWindows(4)],
    ids=repr,
)
def test_records_whose_keys_lack_the_same_are_one_group_over_micro_batches_and_when_late(
    window: Any, shards: int, on: str
) -> None:
    """The boundary: the second micro-batch finds the windows of the first, and late records theirs."""
    stream = TestStream(T0).advance_clock("72h").add(*of_all(1, 1.0)).add(*of_all(2, 2.0), RESTART)
    stream = stream.advance_watermark("10s").add(*of_all(3, 4.0)).add(*of_all(4, 8.0)).advance_watermark("48h")
    if isinstance(window, CountWindows):  # of records in event time: none may be late
        stream = TestStream(T0).add(*of_all(1, 1.0)).add(*of_all(2, 2.0), RESTART).add(*of_all(3, 4.0))
        stream = stream.add(*of_all(4, 8.0)).advance_watermark("48h")
    windowed = read().window(window) if isinstance(window, CountWindows) else read().window(window, "1h")
    job = windowed.aggregate(n=Count(), s=Sum("v"), top=TopK("k", 2)).write("o")
    rows = run(job, stream, on=on, shards=shards).rows
    assert rows or isinstance(window, Global)  # this window fires at the end of the input only
    last = {(r.get("k"), r.get("sub"), r["window_start"], r["window_end"]): (r["n"], r["s"]) for r in rows}
    for key in KEYS if rows else ():
        assert max(value for (k, sub, *_), value in last.items() if (k, sub) == key) == (4, 15.0), key


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    "triggered",
    [
        lambda: read().window(Tumbling("10s"), "1h").trigger(AfterCount(2), Discarding()),
        lambda: read().window(Session("9s"), "1h").trigger(AfterCount(2)),
        lambda: read().window(Session("9s"), "1h").trigger(AfterWatermark(), evict=KeepLast(3)),
        lambda: read().window(Sliding("20s", every="10s"), "1h").trigger(AfterWatermark(early=AfterCount(1))),
    ],
)
def test_triggers_and_evictors_treat_a_missing_key_as_any_other(triggered: Any, shards: int) -> None:
    job = triggered().aggregate(n=Count(), s=Sum("v")).write("o")
    stream = TestStream(T0).add(*of_all(1)).add(*of_all(2), RESTART).advance_watermark("15s").add(*of_all(3))
    stream = stream.advance_watermark("48h")
    rows = {on: run(job, stream, on=on, shards=shards).rows for on in ("reference", "operator")}
    for on, found in rows.items():
        of_key = {key: [_of_window(r) for r in found if (r.get("k"), r.get("sub")) == key] for key in KEYS}
        assert all(sorted(of_key[key]) == sorted(of_key["x", "y"]) for key in KEYS), on
    assert sorted(map(_of_window, rows["operator"])) == sorted(map(_of_window, rows["reference"]))


def _of_window(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["window_start"], row["window_end"], row["pane"], row["n"], row["s"], row["revision"]


def test_a_late_sample_of_a_counter_whose_key_lacks_a_column_changes_its_rate() -> None:
    job = read().window(Tumbling("10s"), "1h").aggregate(r=Rate("v", lookback="1m")).write("o")
    stream = TestStream(T0).add(*of_all(1, 1.0)).add(*of_all(9, 9.0)).advance_watermark("12s").add(*of_all(11, 31.0))
    stream = stream.advance_watermark("25s").add(*of_all(9.5, 10.0)).advance_watermark("40s")
    for on in ("reference", "operator"):
        rows = run(job, stream, on=on).rows
        last = {(r.get("k"), r.get("sub"), r["window_start"]): round(r["r"], 6) for r in rows if r.get("r") is not None}
        for key in KEYS:
            assert last[*key, T0] == round(9 / 8.5, 6)
            assert last[*key, T0 + 10_000] == round(21 / 1.5, 6)


@pytest.mark.parametrize("on", ["reference", "operator"])
def test_a_duplicate_of_a_record_whose_key_is_missing_is_a_duplicate(on: str) -> None:
    job = read().process(Deduplicate(by=("v",), within="1h")).write("o")
    stream = TestStream(T0).add(*of_all(1)).add(*of_all(2), RESTART).add(*of_all(3)).advance_watermark("1h")
    assert len(run(job, stream, on=on).rows) == len(KEYS)


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("join", [partial(IntervalJoin, "-10s", "10s"), TemporalJoin], ids=["interval", "temporal"])
def test_a_missing_key_finds_no_partner_in_joins(join: Any, how: Any, on: str) -> None:
    job = read().join(read("u"), join(how=how)).write("o")
    stream = TestStream(T0, topics=("t", "u")).add(*of_all(2), topic="t").add(*of_all(1), topic="u")
    rows = run(job, stream.advance_watermark("1h"), on=on).rows
    paired = [(r.get("k"), r.get("sub")) for r in rows if r.get("right_time") is not None]
    assert paired == [("x", "y")]
    assert len(rows) == (1 if how == "inner" else len(KEYS))


@pytest.mark.parametrize("on", ["reference", "operator"])
@pytest.mark.parametrize(
    "join", [WindowJoin(Tumbling("10s")), Correlation("v", "v", Sliding("10s", every="5s"), least=1)], ids=repr
)
def test_a_missing_key_finds_no_partner_in_windows(join: Any, on: str) -> None:
    job = read().join(read("u"), join).write("o")
    stream = TestStream(T0, topics=("t", "u")).add(*of_all(1), topic="t").add(*of_all(2), topic="u")
    rows = run(job, stream.advance_watermark("1h"), on=on).rows
    assert {(r.get("k"), r.get("sub")) for r in rows} == {("x", "y")}


@pytest.mark.parametrize("on", ["reference", "operator"])
def test_a_rule_without_the_column_applies_to_no_record(on: str) -> None:
    rules = Stream.read_json("u", Reading)
    job = read().join(rules, Broadcast(identity=("v",), on=("sub",))).write("o", dead=None)
    stream = TestStream(T0, topics=("t", "u")).add(reading(("r", None), 0, 5.0), reading(("r", "y"), 0, 6.0), topic="u")
    rows = run(job, stream.add(*of_all(1), topic="t").advance_watermark("1h"), on=on).rows
    assert sorted((r.get("k") or "", r.get("sub")) for r in rows) == [("", "y"), ("x", "y")]
