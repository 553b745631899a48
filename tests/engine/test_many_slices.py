"""Sliding windows of many slices: what a live minute reads does not grow with them, and late records are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from engine.aggregates import Count, Distinct, Max, Mean
from engine.operators.windows import WindowAggregate
from engine.spec.duration import Duration
from engine.spec.operator import Progress
from engine.state.rescaling import Rescaling
from engine.state.segments import DictSegments, ShardState
from engine.triggers import AfterAny, AfterProcessingTime, AfterWatermark
from engine.vectorized.build import build
from engine.vectorized.windows.blocks import forget_blocks
from engine.windows import Sliding

MINUTE = 60_000
AGGREGATES = {"n": Count(), "mean": Mean("v"), "most": Max("v"), "kinds": Distinct("v")}


class CountedSegments(DictSegments):
    """Segments whose reads and writes are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def get(self, name: str, digest: str = "") -> bytes | None:
        self.asked["read"] += 1
        return super().get(name, digest)

    def put(self, name: str, value: bytes, digest: str = "") -> None:
        self.asked["written"] += 1
        super().put(name, value, digest)


def windows(slices: int, lateness: str = "0s", trigger: AfterAny | None = None) -> WindowAggregate:
    return WindowAggregate(("k",), "time", Sliding(f"{slices}m", every="1m"), Duration(lateness), AGGREGATES, trigger)


def minute(number: int, keys: int = 3) -> pl.DataFrame:
    time = np.full(keys, number * MINUTE, np.int64)
    return pl.DataFrame({"time": time, "k": [f"k{i}" for i in range(keys)], "v": np.arange(keys) + float(number % 7)})


def live(operator: WindowAggregate, segments: DictSegments, minutes: range) -> Iterator[pl.DataFrame]:
    for number in minutes:
        yield step(operator, segments, minute(number), number * MINUTE, (number + 1) * MINUTE)


def step(
    operator: WindowAggregate, segments: DictSegments, records: pl.DataFrame, before: int, now: int
) -> pl.DataFrame:
    state = ShardState(segments)
    results = build(operator).process(records, state, Progress(before, now)).records
    state.save()
    return results


@pytest.mark.parametrize("slices", [100, 512])
def test_a_live_minute_reads_and_writes_few_segments(slices: int) -> None:
    segments, operator = CountedSegments(), windows(slices)
    for _ in live(operator, segments, range(1_000, 1_000 + slices)):
        pass
    segments.asked.clear()
    lasting = 64
    for results in live(operator, segments, range(1_000 + slices, 1_000 + slices + lasting)):
        assert results["n"].to_list() == [slices] * 3
    assert segments.asked["read"] / lasting < 40
    assert segments.asked["written"] / lasting < 4


def test_the_state_follows_the_slices_and_what_is_over_is_removed() -> None:
    segments, operator = DictSegments(), windows(100)
    sizes = []
    for number in range(1_000, 1_330):
        for _ in live(operator, segments, range(number, number + 1)):
            sizes.append(len(segments.values))
    assert max(sizes[110:]) < 100 * 8 / 7 + 10
    assert max(sizes[110:220]) == max(sizes[220:])


@pytest.mark.parametrize("seed", range(4))
def test_late_records_and_gaps_give_what_is_counted_one_by_one(seed: int) -> None:
    """Brute force over the records of each window, with records that come up to two windows late."""
    random, slices, lateness = np.random.default_rng(seed), 80, 100
    segments, operator = DictSegments(), windows(slices, f"{lateness}m")
    records: list[tuple[int, str, float]] = []
    last: dict[tuple[str, int], tuple[int, float, int]] = {}
    revisions: dict[tuple[str, int], list[int]] = defaultdict(list)
    now = 1_000 * MINUTE
    for turn in range(40):
        before, now = now, now + int(random.choice([1, 1, 1, 2, 30])) * MINUTE
        ages = np.where(random.random(4) < 0.4, random.integers(0, 150, 4), random.integers(0, 2, 4))
        batch = [(now - int(age) * MINUTE - 1, f"k{random.integers(2)}", float(random.integers(5))) for age in ages]
        if turn == 30:  # what blocks hold is in the slices as well
            state = ShardState(segments)
            forget_blocks(state)
            state.save()
        results = step(operator, segments, pl.DataFrame(batch, schema=["time", "k", "v"], orient="row"), before, now)
        records += [r for r in batch if r[0] // MINUTE * MINUTE + slices * MINUTE > before - lateness * MINUTE]
        closed_before = before - lateness * MINUTE
        for row in results.iter_rows(named=True):
            key, end = row["k"], row["window_end"]
            inside = [v for t, k, v in records if k == key and end - slices * MINUTE <= t < end]
            assert (row["n"], row["most"], row["kinds"]) == (len(inside), max(inside), len(set(inside)))
            assert row["mean"] == pytest.approx(sum(inside) / len(inside))
            assert closed_before < end <= now
            last[(key, end)] = (len(inside), max(inside), len(set(inside)))
            revisions[(key, end)].append(row["revision"])
    assert all(numbers == list(range(len(numbers))) for numbers in revisions.values())
    assert any(len(numbers) > 1 for numbers in revisions.values())
    for (key, end), (n, most, kinds) in last.items():
        taken = [(t, k, v) for t, k, v in records if k == key and end - slices * MINUTE <= t < end]
        assert n <= len(taken)
        assert (most, kinds) <= (max(v for *_, v in taken), len({v for *_, v in taken}))


def test_a_state_without_blocks_is_taken_over() -> None:
    """States of versions before have slices only; rescaling leaves blocks out."""
    operator, segments = windows(100), DictSegments()
    for _ in live(operator, segments, range(1_000, 1_120)):
        pass
    new = [DictSegments() for _ in range(2)]
    states = [ShardState(shard) for shard in new]
    build(operator).rescale(Rescaling([ShardState(segments)], states, "k"))
    for state in states:
        state.save()
    assert not any(name.startswith("blocks") for shard in new for name in shard.values)
    (wanted,) = live(operator, segments, range(1_120, 1_121))
    alone = [next(live(operator, shard, range(1_120, 1_121))) for shard in new]
    assert {row for rows in alone for row in rows.filter(pl.col("n") == 100).rows()} == set(wanted.rows())


def test_a_trigger_that_is_added_takes_the_blocks_away() -> None:
    operator, segments = windows(100), DictSegments()
    for _ in live(operator, segments, range(1_000, 1_120)):
        pass
    assert any(name.startswith("blocks") for name in segments.values)
    early = windows(100, trigger=AfterAny(AfterWatermark(), AfterProcessingTime("1h")))
    for results in live(early, segments, range(1_120, 1_122)):
        assert results["n"].to_list() == [100] * 3
    assert not any(name.startswith("blocks") for name in segments.values)


def test_an_aggregate_that_is_added_is_in_new_blocks_only_from_its_first_record() -> None:
    segments = DictSegments()
    before = WindowAggregate(("k",), "time", Sliding("100m", every="1m"), Duration("0s"), {"n": Count()})
    for _ in live(before, segments, range(1_000, 1_150)):
        pass
    (results,) = live(windows(100), segments, range(1_150, 1_151))
    assert results["n"].to_list() == [100] * 3
    assert results["most"].to_list() == [1_150 % 7 + i for i in range(3)]
