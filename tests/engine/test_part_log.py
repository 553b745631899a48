"""The log of parts beside a list in plain Python: the same after any changes and restarts, and nothing is left over."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.state.part_log import Part, PartLog
from engine.state.segments import DictSegments, ShardState, Tables
from tests.engine.operators.conftest import some_examples
from tests.engine.operators.test_state import Counted

Kept = tuple[int, int, list[int]]
"""Mark, rows and content of a part."""

CHANGES = st.tuples(
    st.sampled_from(["append", "replace", "forget", "restart", "other"]),
    st.integers(0, 3),
    st.lists(st.integers(0, 99), max_size=3),
    st.sets(st.integers(0, 5), max_size=4),
)


def tables(values: Sequence[int]) -> Tables:
    return {"records": pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64)})}


def content(log: PartLog) -> list[Kept]:
    return [(part.mark, part.rows, log.read(part)["records"]["x"].to_list()) for part in log.parts]


@some_examples
@given(st.lists(CHANGES, max_size=25), st.booleans())
def test_a_log_holds_what_a_list_would_and_no_segment_more(
    changes: list[tuple[str, int, list[int], set[int]]], scoped: bool
) -> None:
    segments, model, others = DictSegments(), list[Kept](), 0

    def opened() -> tuple[ShardState, PartLog, PartLog]:
        state = ShardState(segments)
        part = state.scope("1") if scoped else state
        return state, PartLog(part, "log"), PartLog(part, "other")

    state, log, other = opened()
    for kind, mark, values, chosen in changes:
        places = sorted(place for place in chosen if place < len(model))
        parts_of_log = [log.parts[place] for place in places]
        match kind:
            case "append":
                log.append(tables(values), mark, len(values))
                model.append((mark, len(values), values))
            case "replace":
                log.replace(parts_of_log, tables(values), mark, len(values))
                model.insert(places[0] if places else len(model), (mark, len(values), values))
                for place in reversed(places):
                    del model[place + 1]
            case "forget":
                log.forget(parts_of_log)
                model = [each for place, each in enumerate(model) if place not in places]
            case "other":
                other.append(tables(values))
                others += 1
            case _:
                state.save()
                state, log, other = opened()
        assert content(log) == model
    assert len(other.parts) == others
    for mark in range(4):
        assert sorted(part.rows for part in log.of(mark)) == sorted(rows for m, rows, _ in model if m == mark)
        assert log.count(mark) == len(log.of(mark))
    assert sorted(log.marks) == sorted({mark for mark, _, _ in model})
    assert log.most_rows == max((rows for _, rows, _ in model), default=0)
    parts = [name for name in segments.values if name.split(":")[-1].startswith("log/")]
    assert len(parts) == len(model)


def test_a_part_that_is_added_reads_and_rewrites_nothing() -> None:
    segments = Counted()
    for number in range(4):
        state = ShardState(segments)
        segments.reads.clear()
        segments.written = 0
        PartLog(state, "log").append(tables([number] * 1000), rows=1000)
        assert segments.reads == []
        assert segments.written == len(segments.values[f"log/{number}"])
        state.save()


def test_a_part_that_replaces_others_takes_the_place_of_the_first_and_is_one_write() -> None:
    segments = Counted()
    state = ShardState(segments)
    log = PartLog(state, "log")
    for number in range(4):
        log.append(tables([number]), mark=number)
    segments.written = 0
    log.replace(log.parts[1:3], tables([7, 8]), mark=5)
    assert content(log) == [(0, 0, [0]), (5, 0, [7, 8]), (3, 0, [3])]
    assert segments.written == len(segments.values["log/1"])
    assert sorted(segments.values) == ["log/0", "log/1", "log/3"]


@pytest.mark.parametrize(
    ("rows", "fewest"), [([9, 1, 2, 9], [1, 2]), ([1, 9, 9, 1, 8], [3, 4]), ([2, 2, 2], [0, 1]), ([5, 4], [0, 1])]
)
def test_the_neighbours_with_the_fewest_rows_are_the_first_pair_of_the_least_sum(
    rows: list[int], fewest: list[int]
) -> None:
    log = PartLog(ShardState(DictSegments()), "log")
    for n in rows:
        log.append(tables([n]), rows=n)
    assert [part.number for part in log.fewest_neighbours()] == fewest


def test_a_part_that_is_noted_and_not_there_is_an_error_not_an_empty_part() -> None:
    with pytest.raises(AssertionError, match="noted and not there"):
        PartLog(ShardState(DictSegments()), "log").read(Part(0, 0, 0))
