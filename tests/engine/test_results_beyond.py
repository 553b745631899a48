"""Results that 64 bits cannot hold: a dead letter with a code for that result, and nothing else is touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import (
    AccumulatingAndRetracting,
    AfterCount,
    AfterWatermark,
    Count,
    Instant,
    Keyword,
    Max,
    Mean,
    Record,
    Std,
    Stream,
    Sum,
    Tumbling,
)
from engine.formats.dead_letters import DeadLetter
from engine.testing import TestStream, run
from tests.engine.readings import T0
from tests.engine.ways import WAYS, windowed

MOST = 2**63 - 1


class Amount(Record):
    """A whole number, and one that is not."""

    time: Instant
    k: Keyword
    n: int | None = None
    v: float | None = None


def amounts(*rows: dict[str, Any]) -> TestStream:
    """The records, half a second and a restart between them, then the end of all windows."""
    stream = TestStream(T0).advance_clock("2h")
    for at, one in enumerate(rows):
        stream = stream.add({"time": T0 + at * 500} | one).restart()
    return stream.advance_watermark("3h")


def letters(dead: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [(each["error.code"], json.loads(each["payload"])) for each in dead]


@pytest.mark.parametrize("way", WAYS)
def test_a_sum_beyond_64_bits_is_a_dead_letter_with_key_and_window_in_windows_of_every_kind(way: str) -> None:
    """The boundary: 2^63 is one more than 64 bits hold. What a sum passes on its way does not matter."""
    job = windowed(Stream.read_json("t", Amount).key_by("k"), way, {"s": Sum("n"), "most": Max("n")}).write("o")
    of = {"beyond": (MOST, 1), "held": (MOST, 1, -1), "below": (-(2**63), -1), "least": (-(2**62), -(2**62))}
    rows = [{"k": k, "n": number} for k, numbers in of.items() for number in numbers]
    expected = {(k, sum(numbers)) for k, numbers in of.items() if -(2**63) <= sum(numbers) < 2**63}
    for on in ("reference", "operator"):
        outcome = run(job, amounts(*rows), on=on)
        assert {(row["k"], row["s"]) for row in outcome.rows} >= expected
        if way != "several slices":  # of which some hold one of the numbers only
            assert {(row["k"], row["s"]) for row in outcome.rows} == expected
    reported = [(code, row["k"]) for code, row in letters(outcome.dead)]
    assert {code for code, _ in reported} == {"RESULT_BEYOND"}
    assert {k for _, k in reported} == {"beyond", "below", *(["held"] if way == "several slices" else [])}
    assert all("window_start" in row and "window_end" in row for _, row in letters(outcome.dead))


def test_each_result_beyond_64_bits_has_a_letter_of_its_own_that_names_the_column_and_no_message() -> None:
    job = Stream.read_json("t", Amount).key_by("k").window(Tumbling("10s")).aggregate(total=Sum("n")).write("o")
    rows = [{"k": k, "n": MOST} for k in ("a", "a", "b", "b")]
    dead = run(job, amounts(*rows)).dead
    found = [DeadLetter.from_json(json.dumps(each).encode()) for each in dead]
    assert len({tuple(getattr(each, name) for name in DeadLetter.identity) for each in found}) == 2
    assert all(each.offset < 0 and each.topic == "o" and "total" in each.reason for each in found)
    assert run(job, amounts(*rows)).dead == dead  # a micro-batch that is repeated writes the same


def test_a_result_that_is_held_again_after_one_that_is_not_is_written_and_takes_nothing_back() -> None:
    windows = Stream.read_json("t", Amount).key_by("k").window(Tumbling("10s"))
    job = (
        windows.trigger(AfterWatermark(early=AfterCount(1)), AccumulatingAndRetracting())
        .aggregate(s=Sum("n"))
        .write("o")
    )
    numbers = [MOST, 1, -2]
    made = {on: run(job, amounts(*({"k": "a", "n": n} for n in numbers)), on=on) for on in ("reference", "operator")}
    for some in made.values():
        rows = [(row["s"], row["retraction"]) for row in some.rows]
        assert rows[:3] == [(MOST, False), (MOST, True), (MOST - 1, False)]
    assert len(made["operator"].dead) == 1


def test_windows_after_windows_take_in_no_result_that_was_not_held() -> None:
    first = Stream.read_json("t", Amount).key_by("k").window(Tumbling("1s")).aggregate(s=Sum("n"))
    job = first.window(Tumbling("1m")).aggregate(parts=Count(), s=Sum("s")).write("o")
    rows = [{"k": "a", "n": n} for n in (MOST, 1, 5, 6, 7, 8)]  # two a second
    for on in ("reference", "operator"):
        made = run(job, amounts(*rows), on=on)
        assert [(row["parts"], row["s"]) for row in made.rows] == [(2, 26)]
    assert [(code, row["s"]) for code, row in letters(made.dead)] == [("RESULT_BEYOND", None)]


@pytest.mark.parametrize("retraction", [False, True])
def test_a_sum_over_results_that_are_taken_back_is_held_or_told(retraction: bool) -> None:
    windows = Stream.read_json("t", Amount).key_by("k").window(Tumbling("1s"))
    panes = AfterWatermark(early=AfterCount(1)) if retraction else AfterWatermark()
    job = (
        windows.trigger(panes, AccumulatingAndRetracting())
        .aggregate(s=Sum("n"))
        .window(Tumbling("1m"))
        .aggregate(s=Sum("s"))
        .write("o")
    )
    for on in ("reference", "operator"):
        held = run(job, amounts(*({"k": "a", "n": n} for n in (2**62, 2**62 - 1))), on=on)
        assert [row["s"] for row in held.rows] == [2**63 - 1]
        beyond = run(job, amounts({"k": "a", "n": 2**62}, {"k": "a", "n": 1}, {"k": "a", "n": 2**62}), on=on)
        assert not beyond.rows
    assert [code for code, _ in letters(beyond.dead)] == ["RESULT_BEYOND"]


@pytest.mark.parametrize("aggregate", [Sum("v"), Mean("v"), Std("v")])
def test_a_float_that_becomes_infinite_is_told_too(aggregate: Any) -> None:
    large = Stream.read_json("t", Amount).map(v="v * 1e158")
    job = large.key_by("k").window(Tumbling("10s")).aggregate(x=aggregate).write("o")
    made = run(job, amounts({"k": "a", "v": 9e149}, {"k": "a", "v": 9e149}, {"k": "b", "v": 1.0}))
    assert [row["k"] for row in made.rows] == ["b"]
    assert [(code, row["k"]) for code, row in letters(made.dead)] == [("RESULT_BEYOND", "a")]
