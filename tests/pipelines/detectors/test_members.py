"""How many members a set of replicas has at each time, and whether it goes on without one of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from engine.columns.partitioning import slots
from engine.state.rescaling import Rescaling
from engine.state.segments import DictSegments, ShardState
from pipelines.contracts.records.news import LIVING, LIVING_EVERY, PARTITION
from pipelines.jobs.detectors.metrics.members import Members
from tests.pipelines.detectors.shard import T0, Event, run, window

MINUTE, HORIZON = 60_000, 600_000
ENDS = "bcdfghjklm"


def windows(alive: dict[str, range], sets: int = 1) -> pl.DataFrame:
    """A window a minute of pods that live for some minutes, in sets that are alike."""
    rows = [
        (f"shop/app{n}-7d4b9c6f5-x2x7{name}", minute * MINUTE, 1.0)
        for n in range(sets)
        for name, minutes in alive.items()
        for minute in minutes
    ]
    return pl.DataFrame(rows, {"entity": pl.String, "window_end": pl.Int64, "value": pl.Float64}, orient="row")


def pods(number: int, minutes: range) -> dict[str, range]:
    return dict.fromkeys(ENDS[:number], minutes)


@pytest.mark.parametrize(
    ("others", "goes_on"),
    [({}, False), ({"w": range(60, 80)}, True), ({"w": range(66, 80)}, False), ({"w": range(60, 63)}, False)],
    ids=["nobody comes", "another", "too late", "gone again"],
)
def test_a_set_goes_on_if_it_has_as_many_members_when_the_absence_is_certain(
    others: dict[str, range], goes_on: bool
) -> None:
    members = Members(ShardState(DictSegments()), HORIZON)
    members.take(windows(pods(3, range(1, 80)) | {"v": range(1, 61)} | others))
    gone = "shop/app0-7d4b9c6f5-x2x7v"
    assert members.goes_on(gone, 60 * MINUTE, 65 * MINUTE, MINUTE) == goes_on
    assert not members.goes_on("web-1", 60 * MINUTE, 65 * MINUTE, MINUTE)


def test_what_is_kept_is_bounded_and_found_after_the_shards_are_others() -> None:
    old = [ShardState(DictSegments()) for _ in range(2)]
    sizes = []
    whole = windows(pods(4, range(1, 3_000)) | {"v": range(1, 2_961), "w": range(2_960, 3_000)}, sets=6)
    for end in range(50, 3_001, 50):
        for shard, state in enumerate(old):
            ends = pl.col("window_end").is_between((end - 50) * MINUTE, end * MINUTE, closed="right")
            part = whole.filter(ends)
            members = Members(state, HORIZON)
            members.take(part.filter(pl.Series(slots(part["entity"], 2) == shard)))
            members.save(end * MINUTE)
            state.save()
        sizes.append(sum(sum(state.sizes.values()) for state in old))
    assert max(sizes[30:]) <= 1.2 * max(sizes[6:20])
    new = [ShardState(DictSegments()) for _ in range(3)]
    Members.rescale(Rescaling(old, new, "entity"))
    for n in range(6):
        gone = f"shop/app{n}-7d4b9c6f5-x2x7v"
        shard = int(slots(pl.Series([gone]), 3)[0])
        found = [Members(state, HORIZON).goes_on(gone, 2_960 * MINUTE, 2_965 * MINUTE, MINUTE) for state in new]
        assert found == [number == shard for number in range(3)]


@pytest.mark.parametrize("pod", ["_partition-x/app-7d4b9c6f5-x2x7", "_partition-0-7d4b9c6f5-x2x7"])
def test_replicas_whose_set_is_named_as_a_partition_is_are_not_counted_for_its_machines(pod: str) -> None:
    """Agents may give a machine any name, and a site with more machines than there are would be in titles."""
    events: list[Event] = []
    for name in ENDS[:6]:
        rng = np.random.default_rng(ord(name))
        events += [
            window(pod + name, "cpu", n, rng.normal(50, 2) + (500.0 if n >= 240 else 0.0), MINUTE)
            for n in range(1, 301)
        ]  # fmt: skip
    machines = [row for row in run(events, [300], MINUTE).counts if row["entity"].startswith(PARTITION)]
    assert {row["entity"].removeprefix(PARTITION).isdigit() for row in machines} == {True}
    assert all(row["window_end"] % LIVING_EVERY == 0 for row in machines)


def counted(events: list[Event], cuts: list[int]) -> dict[tuple[str, int], float]:
    """How many replicas were told of each workload, by the minute."""
    counts = [row for row in run(events, cuts, MINUTE).counts if not row["entity"].startswith(PARTITION)]
    assert {row["metric"] for row in counts} == {LIVING}
    return {(row["entity"], (row["window_end"] - T0) // MINUTE): row["actual"] for row in counts}


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("cuts", [[300], [50, 200, *range(230, 262), 300]], ids=["at once", "each minute"])
def test_of_what_is_novel_it_is_said_how_many_replicas_there_are(every: int, cuts: list[int]) -> None:
    """Six replicas, of which two are odd from minute 240 on, and one falls silent after minute 260."""
    rng = np.random.default_rng(1)
    events: list[Event] = []
    for n in range(6):
        for minute in range(1 + n % every, 301, every):
            odd = 500.0 if n < 2 and minute >= 240 else 0.0
            if n != 5 or minute <= 260:
                name, value = f"shop/app-7d4b9c6f5-x2x7{ENDS[n]}", rng.normal(50, 2) + odd
                events.append(window(name, "cpu", minute, value, MINUTE))
        events += [window(f"web-{n}", "cpu", minute, rng.normal(50, 2), MINUTE) for minute in range(1, 301)]
    told = counted(events, cuts)
    assert {name for name, _ in told} == {"shop/app"}
    assert {number for (_, minute), number in told.items() if minute <= 261} == {6.0}
    assert set(told.values()) <= {6.0, 5.0}
    assert any(240 <= minute <= 245 for _, minute in told)
