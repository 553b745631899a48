"""State of ordered operators is kept like a log: nothing is lost, and a batch reads and writes what it concerns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.spec.duration import END_OF_TIME
from engine.state import key_table as table
from engine.state.key_table import KeyTable
from engine.state.segments import DictSegments, ShardState, pack
from engine.vectorized import ordered as base
from engine.vectorized.ordered import Waiting
from tests.engine.operators.conftest import some_examples

DUE = pl.col("time")


class Counted(DictSegments):
    """Counts the segments that are read, and the bytes that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.written = 0

    def get(self, name: str, digest: str = "") -> bytes | None:
        self.reads.append(name)
        return super().get(name)

    def put(self, name: str, value: bytes, digest: str = "") -> None:
        self.written += len(value)
        super().put(name, value)


@some_examples
@given(st.lists(st.tuples(st.lists(st.integers(0, 99), max_size=6), st.integers(0, 12)), max_size=40))
def test_waiting_records_come_out_once_when_they_are_due(batches: list[tuple[list[int], int]]) -> None:
    segments, now, inside, outside = DictSegments(), 0, Counter[int](), Counter[int]()
    for times, step in batches:
        now += step
        state = ShardState(segments)
        batch = pl.DataFrame({"time": pl.Series(times, dtype=pl.Int64)})
        ready = Waiting(state).release(batch, DUE, now)
        state.save()
        inside += Counter(times)
        outside += Counter(ready["time"].to_list())
        assert outside == Counter({time: n for time, n in inside.items() if time <= now})
        assert len([name for name in segments.values if name.startswith("held")]) <= base.MOST_PARTS


def test_records_that_wait_through_many_batches_stay_in_few_parts_and_all_come_out() -> None:
    segments, parts = DictSegments(), []
    for number in range(40):
        state = ShardState(segments)
        Waiting(state).release(pl.DataFrame({"time": [1000 + number]}), DUE, 0)
        state.save()
        parts.append(sum(name.startswith("held") for name in segments.values))
    assert max(parts) <= 20, "each part is a round trip to Spark once its records are due"
    state = ShardState(segments)
    ready = Waiting(state).release(pl.DataFrame(schema={"time": pl.Int64}), DUE, 1039)
    state.save()
    assert sorted(ready["time"].to_list()) == [1000 + number for number in range(40)]
    assert set(segments.values) == {"notes"}


def test_a_part_of_the_waiting_records_is_not_read_until_one_of_them_is_due() -> None:
    segments = Counted()
    for number in range(5):
        state = ShardState(segments)
        Waiting(state).release(pl.DataFrame({"time": [1000 * number + 500]}), DUE, 0)
        state.save()
    segments.reads.clear()
    ready = Waiting(ShardState(segments)).release(pl.DataFrame({"time": [9000]}), DUE, 1700)
    assert sorted(ready["time"].to_list()) == [500, 1500]
    assert segments.reads == ["notes", "held/0", "held/1"]


def test_of_what_is_read_long_before_its_time_most_is_seldom_read_again() -> None:
    """A replay reads the messages of months at once, and some of them are due in each micro-batch."""
    segments, out = Counted(), list[int]()
    times = [7 * number % 10_000 for number in range(10_000)]
    for now in range(0, 10_001, 20):
        state = ShardState(segments)
        waiting = Waiting(state, "ahead", near=500)
        batch = pl.DataFrame({"time": times if now == 0 else []}, {"time": pl.Int64})
        ready = waiting.release(batch, DUE, now)["time"].to_list()
        assert all(now - 20 < time <= now for time in ready) and (now > 0 or ready == [0])
        assert waiting.first == (now + 1 if now < 9_999 else END_OF_TIME)
        out += ready
        state.save()
    assert sorted(out) == list(range(10_000))
    whole = len(pack({"records": pl.DataFrame({"time": times, "__due": times})}))
    assert segments.written < 60 * whole, "500 micro-batches would write it 250 times"


@some_examples
@given(
    st.lists(st.tuples(st.lists(st.sampled_from("abcdefghij"), max_size=4), st.booleans()), max_size=30),
    st.integers(1, 4),
)
def test_a_table_in_parts_is_the_table(batches: list[tuple[list[str], bool]], parts: int) -> None:
    segments, expected = DictSegments(), Counter[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "LARGE", 0)
        patch.setattr(table, "MOST_PARTS", parts)
        for keys, forget in batches:
            state = ShardState(segments)
            loaded = KeyTable.load(["k"], {"n": 0, "word": ""}, state)
            rows = loaded.rows(pl.DataFrame({"k": pl.Series(keys, dtype=pl.String)}))
            np.add.at(loaded.columns["n"], rows, 1)
            loaded.columns["word"][rows] = keys
            loaded.touch(rows)
            expected += Counter(keys)
            if forget:
                loaded.keep(loaded.columns["n"] > 1)
                expected = Counter({key: n for key, n in expected.items() if n > 1})
            loaded.save(state)
            state.save()
            again = KeyTable.load(["k"], {"n": 0, "word": ""}, ShardState(segments))
            names = again.keys["k"].to_list() if again.keys is not None else []
            assert dict(zip(names, again.columns["n"].tolist(), strict=True)) == expected
            assert again.columns["word"].tolist() == names


def test_of_a_large_table_a_small_batch_writes_little() -> None:
    segments = Counted()
    keys = pl.DataFrame({"k": pl.Series([f"key-{i}" for i in range(table.LARGE)])})
    for batch in (keys, keys[:100], keys[100:200]):
        segments.written = 0
        state = ShardState(segments)
        loaded = KeyTable.load(["k"], {"x": 0.0}, state)
        rows = loaded.rows(batch)
        loaded.columns["x"][rows] = np.random.default_rng(0).random(len(rows))
        loaded.touch(rows)
        loaded.save(state)
        state.save()
    whole = sum(map(len, segments.values.values()))
    assert segments.written < whole / 50


def test_what_one_of_several_operators_removes_takes_no_place_in_the_state() -> None:
    whole = ShardState(DictSegments())
    parts = [whole.scope(name) for name in ("a", "b")]
    before = whole.save()
    for part in parts:
        part.put("rows", b"x" * 1000)
    assert whole.save() > before + 2000
    parts[0].remove("rows")
    assert (parts[0].get("rows"), parts[1].get("rows")) == (None, b"x" * 1000)
    parts[1].remove("rows")
    assert whole.save() == before
    assert whole.segments.get("a:rows") is None
