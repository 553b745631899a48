"""Windows whose size is no multiple of the slide, windows with gaps, and matches that end in an absence.

What is expected is computed by brute force from the definitions, record by record.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    AfterCount,
    AfterWatermark,
    Correlation,
    Count,
    Event,
    Max,
    Pattern,
    Rate,
    Sliding,
    Stream,
    Sum,
    WindowJoin,
)
from engine.spec.errors import NewnormalError
from engine.testing import TestStream, run
from tests.engine.readings import T0, Value

BOTH = ("reference", "operator")
Entry = tuple[int, str | None, int | None]


def stream_of(batches: list[list[Entry]], restarts: set[int], topic: str = "t") -> TestStream:
    stream = TestStream(T0, topics=("t", "u")) if topic == "both" else TestStream(T0)
    stream = stream.advance_clock("2h")
    for at, batch in enumerate(batches):
        for side in ("t", "u") if topic == "both" else (None,):
            rows = [
                {"time": T0 + s * 1000, "k": k, "v": v}
                for s, k, v in batch
                if side is None or (s % 2 == 0) == (side == "t")
            ]
            stream = stream.add(*rows, topic=side) if rows else stream
        stream = stream.restart() if at in restarts else stream
    return stream.advance_watermark("3h")


def windows_of(second: int, size: int, every: int, offset: int) -> list[int]:
    """The starts of the windows in which a second lies, tried one by one."""
    near = range(second - size, second + 1)
    return [start for start in near if (T0 // 1000 + start - offset) % every == 0 and start <= second < start + size]


entries = st.lists(
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(-9, 9))),
        max_size=6,
    ),
    min_size=1,
    max_size=4,
)
lengths = {"size": st.integers(1, 25), "every": st.integers(1, 25), "offset": st.integers(-5, 30)}


@settings(max_examples=20, deadline=None)
@given(batches=entries, restarts=st.sets(st.integers(0, 3)), early=st.booleans(), **lengths)
def test_any_size_and_any_slide_give_the_windows_of_their_definition(
    batches: list[list[Entry]], restarts: set[int], early: bool, size: int, every: int, offset: int
) -> None:
    """The boundary: a slide just below and just above the size; a record in a gap is in no window, and not late."""
    window = Sliding(f"{size}s", every=f"{every}s", offset=f"{offset}s")
    windows = Stream.read_json("t", Value, out_of_orderness="2m").key_by("k").window(window, "10m")
    windows = windows.trigger(AfterWatermark(early=AfterCount(2))) if early else windows
    job = windows.aggregate(n=Count(), total=Sum("v"), most=Max("v")).write("o")
    expected: dict[tuple[str | None, int], list[int | None]] = defaultdict(list)
    for second, k, v in (entry for batch in batches for entry in batch):
        for start in windows_of(second, size, every, offset):
            expected[k, start].append(v)
    for on in BOTH:
        outcome = run(job, stream_of(batches, restarts), on=on)
        assert not outcome.late
        last_panes = {}
        for row in outcome.rows:  # the last pane of a window is the one that counts
            start = row["window_start"]
            assert row["window_end"] - start == size * 1000
            last_panes[row.get("k"), (start - T0) // 1000] = (row["n"], row.get("total"), row.get("most"))
        values_of = {name: [v for v in values if v is not None] for name, values in expected.items()}
        assert last_panes == {
            name: (len(values), sum(values_of[name]) if values_of[name] else None, max(values_of[name], default=None))
            for name, values in expected.items()
        }


@settings(max_examples=20, deadline=None)
@given(batches=entries, restarts=st.sets(st.integers(0, 3)), **lengths)
def test_a_join_in_windows_of_any_slide_has_the_pairs_of_each_window(
    batches: list[list[Entry]], restarts: set[int], size: int, every: int, offset: int
) -> None:
    window = Sliding(f"{size}s", every=f"{every}s", offset=f"{offset}s")
    left, right = (Stream.read_json(topic, Value, out_of_orderness="2m").key_by("k") for topic in ("t", "u"))
    job = left.join(right, WindowJoin(window)).write("o")
    all_entries = [entry for batch in batches for entry in batch]
    lefts, rights = ([e for e in all_entries if e[0] % 2 == side and e[1] is not None] for side in (0, 1))
    expected = sorted(
        (k, start, second, other, str(v), str(w))
        for second, k, v in lefts
        for other, key, w in rights
        if k == key
        for start in windows_of(second, size, every, offset)
        if start in windows_of(other, size, every, offset)
    )
    for on in BOTH:
        outcome = run(job, stream_of(batches, restarts, "both"), on=on)
        assert not outcome.late
        times = ("window_start", "left_time", "right_time")
        assert expected == sorted(
            (row["k"], *((row[name] - T0) // 1000 for name in times), str(row.get("v")), str(row.get("v_right")))
            for row in outcome.rows
        )


EVENTS = {
    "one": (Event("a", "v > 0"), Event("no", "v = 0", "absent")),
    "two": (Event("a", "v > 0"), Event("b", "v > a_v"), Event("no", "v = 0", "absent")),
    "at once": (Event("a", "v > 0"), Event("b", "v > 2", "next"), Event("no", "v = 0", "absent")),
    "between": (
        Event("a", "v > 0"),
        Event("not", "v < -3", "absent"),
        Event("b", "v > 1"),
        Event("no", "v = 0", "absent"),
    ),
}


def matches_of(kind: str, values: list[tuple[int, int]], within: int) -> list[tuple[int, ...]]:
    """The seconds of the records of each match among the values of a key, which are in order."""
    later = {
        "one": None,
        "two": lambda first, v: v > first,
        "at once": lambda first, v: v > 2,
        "between": lambda first, v: v > 1,
    }[kind]
    runs = []
    for at, (second, first) in enumerate(values):
        if first <= 0:
            continue
        taken = [at]
        for number in range(at + 1, len(values)):
            then, v = values[number]
            if then > second + within:
                break
            if later and len(taken) == 1:
                if kind == "between" and v < -3:
                    break
                if later(first, v):
                    taken.append(number)
                elif kind == "at once":
                    break
            elif v == 0:
                taken.append(-1)
                break
        if len(taken) == (2 if later else 1) and -1 not in taken:
            runs.append(taken)
    matches, gone_on = list[tuple[int, ...]](), -1
    for taken in runs:
        if taken[0] > gone_on:
            matches.append(tuple(values[number][0] for number in taken))
            gone_on = taken[-1]
    return matches


@pytest.mark.parametrize("kind", EVENTS)
@settings(max_examples=15, deadline=None)
@given(
    records=st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab"), st.integers(-5, 5)), max_size=16,
                     unique_by=lambda e: e[:2]),
    cuts=st.lists(st.integers(0, 16), max_size=3), restarts=st.sets(st.integers(0, 3)), within=st.integers(1, 15),
)  # fmt: skip
def test_a_match_that_ends_in_an_absence_ends_the_runs_that_began_up_to_its_last_record(
    kind: str, records: list[tuple[int, str, int]], cuts: list[int], restarts: set[int], within: int
) -> None:
    pattern = Pattern(EVENTS[kind], within=f"{within}s", columns=("v",), after="past_last")
    job = Stream.read_json("t", Value).key_by("k").process(pattern).write("o")
    ordered = sorted(records)
    expected = sorted(
        (k, taken[0] + within, *taken)
        for k in "ab"
        for taken in matches_of(kind, [(s, v) for s, key, v in ordered if key == k], within)
    )
    bounds = sorted({0, *(cut for cut in cuts if cut < len(ordered)), len(ordered)})
    batches: list[list[Any]] = [ordered[a:b] for a, b in pairwise(bounds)] or [[]]
    names = ["a_time", "b_time"] if kind != "one" else ["a_time"]
    for on in BOTH:
        made = run(job, stream_of(batches, restarts), on=on)
        assert not made.late
        found = [(row["k"], *((row[name] - T0) // 1000 for name in ("time", *names))) for row in made.rows]
        assert sorted(found) == expected


def test_what_needs_slots_or_slices_refuses_other_slides_when_it_is_built() -> None:
    odd = Sliding("90s", every="60s")
    with pytest.raises(NewnormalError, match="WINDOW_INVALID"):
        Correlation("v", "v", odd)
    with pytest.raises(NewnormalError, match="AGGREGATE_UNSUPPORTED"):
        Stream.read_json("t", Value).key_by("k").window(odd).aggregate(r=Rate("v"))
    for wrong in ({"size": "0s", "every": "1s"}, {"size": "1s", "every": "0s"}):
        with pytest.raises(NewnormalError, match="WINDOW_INVALID"):
            Sliding(**wrong)
