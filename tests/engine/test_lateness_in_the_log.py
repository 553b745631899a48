"""Where a topic is partitioned by the key, the log of a record's own partition decides whether the record is too late.

So the same logs give the same final windows and the same late records, however they are cut into micro-batches and
divided among shards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.operators.deduplicate import Deduplicate
from engine.reference import Arrival, Entry, Watermark, interpret
from engine.spec.duration import NEVER
from engine.spec.job import Job
from engine.stream import Stream
from engine.triggers import (
    ACCUMULATING,
    AccumulatingAndRetracting,
    Accumulation,
    AfterCount,
    AfterWatermark,
    Trigger,
)
from engine.watermarks import BoundedOutOfOrderness
from engine.windows import Session, Sliding, Tumbling, Window
from tests.engine.operators.conftest import job_of, point, points
from tests.engine.panes import event, job
from tests.engine.test_windows_match_reference import assert_same, extractor, sample

T0 = 1_700_000_000_000
ARRIVED = T0 + 3_600_000
PARTITIONS = 4
KEYS = {p: [name for name in "abcdefghijklmnopqrstuvwxyz" if crc32(name.encode()) % PARTITIONS == p] for p in range(4)}
"""Two or more keys of each partition."""

WINDOWS: dict[str, tuple[Window, Trigger | None, Accumulation]] = {
    "tumbling": (Tumbling("10s"), None, ACCUMULATING),
    "sliding": (Sliding("20s", every="5s"), None, ACCUMULATING),
    "sliding, kept one by one": (Sliding("20s", every="5s"), AfterWatermark(early=AfterCount(3)), ACCUMULATING),
    "session": (Session("6s"), AfterWatermark(), AccumulatingAndRetracting()),
}
"""Of sessions that are merged after they have fired, the earlier ones are taken back."""

Log = list[Entry]
some = settings(
    deadline=None,
    max_examples=10,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def partitioned(plain: Job, bound: str = "0s") -> Job:
    """A job whose input is partitioned by the key, and whose watermark waits for all partitions."""
    (source,) = plain.inputs
    (topic,) = source.formats
    expected = tuple((topic, partition) for partition in range(PARTITIONS))
    strategy = BoundedOutOfOrderness(bound, "1h", expected)
    return replace(plain, inputs=(replace(source, partitions=PARTITIONS, watermark=strategy),))


@st.composite
def logs(draw: st.DrawFn, writes_watermarks: bool = True, topic: str = "t") -> list[Log]:
    """The log of each partition: every entry is a message; records come up to 40 s late."""
    drawn: list[Log] = []
    for partition in range(PARTITIONS):
        newest, log = 0, list[Entry]()
        if writes_watermarks:
            log.append(Watermark(topic, partition, ARRIVED, NEVER))
        for number in range(draw(st.integers(1, 9))):
            arrived = ARRIVED + number + 1
            newest += draw(st.integers(0, 20)) * 500
            if writes_watermarks and draw(st.booleans()):
                log.append(Watermark(topic, partition, arrived, T0 + newest))
                continue
            key = draw(st.sampled_from(KEYS[partition][:2]))
            time = newest + draw(st.integers(-80, 10)) * 500
            log.append(Arrival(topic, partition, arrived, event(key, T0 + time, float(2**number))))
        log.append(
            Watermark(topic, partition, 2 * ARRIVED, T0 + 3_600_000)
            if writes_watermarks
            else Arrival(topic, partition, 2 * ARRIVED, event(KEYS[partition][2], T0 + 3_600_000, 0.0))
        )
        drawn.append(log)
    return drawn


@st.composite
def cut(draw: st.DrawFn, all_logs: Sequence[Log]) -> list[list[Entry]]:
    """The logs cut into micro-batches, in each partition at places of its own."""
    number = draw(st.integers(1, 6))
    parts = []
    for log in all_logs:
        cuts = sorted(draw(st.lists(st.integers(0, len(log)), min_size=number - 1, max_size=number - 1)))
        parts.append([log[a:b] for a, b in pairwise([0, *cuts, len(log)])])
    return [[entry for part in parts for entry in part[batch]] for batch in range(number)]


def last_panes(rows: Sequence[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The last result of each window that was not taken back."""
    panes: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        window = row["key"], row["window_start"], row["window_end"]
        if row["retraction"]:
            panes.pop(window, None)
        else:
            panes[window] = row["n"], row["sum"], row["max"]
    return panes


def in_order(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("writes_watermarks", [True, False], ids=["watermarks in the log", "a bound"])
@pytest.mark.parametrize("kind", WINDOWS)
@some
@given(data=st.data(), lateness=st.sampled_from(["0s", "4s", "10s"]), shards=st.sampled_from([1, 2, 3, 4]))
def test_final_windows_and_late_records_do_not_depend_on_batches_or_shards(
    driven: Callable[..., Any], kind: str, writes_watermarks: bool, data: st.DataObject, lateness: str, shards: int
) -> None:
    all_logs = data.draw(logs(writes_watermarks))
    partitioned_job = partitioned(job(*WINDOWS[kind], lateness=lateness), "3s")
    at_once = driven(partitioned_job, 1).run([[entry for log in all_logs for entry in log]])
    run = driven(partitioned_job, shards).run(data.draw(cut(all_logs)))
    assert in_order(run.late) == in_order(at_once.late)
    assert last_panes(run.rows) == last_panes(at_once.rows)


@pytest.mark.parametrize("kind", WINDOWS)
@some
@given(data=st.data(), lateness=st.sampled_from(["0s", "4s", "10s"]))
def test_every_pane_and_every_late_record_is_as_the_reference_says(
    driven: Callable[..., Any], kind: str, data: st.DataObject, lateness: str
) -> None:
    batches = data.draw(cut(data.draw(logs())))
    partitioned_job = partitioned(job(*WINDOWS[kind], lateness=lateness))
    run, outcome = driven(partitioned_job, 1).run(batches), interpret(partitioned_job, batches)
    assert run.watermarks == outcome.watermarks
    assert in_order(run.late) == in_order(outcome.late)
    names = ("key", "window_start", "window_end", "pane", "timing", "revision", "n", "sum", "max", "retraction")
    assert {tuple(r[n] for n in names) for r in run.rows} == {tuple(r.get(n) for n in names) for r in outcome.rows}


@pytest.mark.parametrize("kind", ["tumbling", "sliding"])
@some
@given(data=st.data(), lateness=st.sampled_from(["0s", "10s"]), shards=st.sampled_from([1, 2, 4]))
def test_the_statistics_of_the_extractor_do_not_depend_on_batches_or_shards(
    driven: Callable[..., Any], kind: str, data: st.DataObject, lateness: str, shards: int
) -> None:
    all_logs = [[as_sample(entry) for entry in log] for log in data.draw(logs(topic="telemetry"))]
    window = WINDOWS[kind][0]
    assert isinstance(window, Sliding)
    partitioned_job = partitioned(extractor(window, lateness))
    wanted = driven(partitioned_job, 1).run([[entry for log in all_logs for entry in log]])
    run = driven(partitioned_job, shards).run(data.draw(cut(all_logs)))
    assert in_order(run.late) == in_order(wanted.late)
    final, expected = run.final(), wanted.final()
    assert final.keys() == expected.keys()
    for name, row in final.items():
        assert_same(row, expected[name], revision=False)


def as_sample(entry: Entry) -> Entry:
    """An event as a sample of a gauge, or every other one of a counter."""
    if not isinstance(entry, Arrival):
        return entry
    record = entry.record
    kind = "counter" if int(math.log2(record["value"])) % 2 else "gauge"
    return replace(entry, record=sample(record["key"], kind, record["time"] - T0, record["value"]))


def test_a_record_is_too_late_by_its_own_partition_although_another_partition_lags(
    driven: Callable[..., Any],
) -> None:
    """Partition 0 says 30 s, partition 1 still nothing: a record at 5 s of partition 0 is too late, in any batch."""
    key, other = KEYS[0][0], KEYS[1][0]
    ahead = [Watermark("t", p, ARRIVED, T0 + 30_000 if p == 0 else NEVER) for p in range(PARTITIONS)]
    late = Arrival("t", 0, ARRIVED + 1, event(key, T0 + 5_000, 1.0))
    lagging = Arrival("t", 1, ARRIVED + 1, event(other, T0 + 5_000, 2.0))
    end: list[Entry] = [Watermark("t", p, ARRIVED + 2, T0 + 600_000) for p in range(PARTITIONS)]
    made = partitioned(job(Tumbling("10s")))
    for batches in ([[*ahead, late, lagging, *end]], [ahead, [late, lagging], end], [[*ahead, lagging], [late], end]):
        run = driven(made, 1).run(batches)
        assert [row["key"] for row in run.late] == [key]
        assert [(row["key"], row["sum"]) for row in run.rows] == [(other, 2.0)]


def test_a_record_too_late_for_one_of_its_windows_is_in_the_other_whatever_the_batches(
    driven: Callable[..., Any],
) -> None:
    """At 11 s in its partition a record at 7 s misses [0 s, 10 s) and counts in [5 s, 15 s)."""
    first, second = KEYS[0][0], KEYS[1][0]
    begin: list[Entry] = [Watermark("t", p, ARRIVED, NEVER) for p in range(PARTITIONS)]
    log: list[Entry] = [
        Arrival("t", 0, ARRIVED + 1, event(first, T0 + 6_000, 1.0)),
        Watermark("t", 0, ARRIVED + 2, T0 + 11_000),
        Arrival("t", 0, ARRIVED + 3, event(first, T0 + 7_000, 2.0)),
    ]
    lagging: list[Entry] = [Arrival("t", 1, ARRIVED + 3, event(second, T0 + 7_000, 4.0))]
    end: list[Entry] = [Watermark("t", p, ARRIVED + 4, T0 + 600_000) for p in range(PARTITIONS)]
    partitioned_job = partitioned(job(Sliding("10s", every="5s")))
    for batches in (
        [[*begin, *log, *lagging, *end]],
        [begin, log[:2], log[2:], lagging, end],
        [begin, log, lagging + end],
    ):
        panes = last_panes(driven(partitioned_job, 1).run(batches).rows)
        assert {(end - T0, key): total for (key, _, end), (_, total, _) in panes.items()} == {
            (10_000, first): 1.0,
            (15_000, first): 3.0,
            (10_000, second): 4.0,
            (15_000, second): 4.0,
        }


@pytest.mark.parametrize("together", [True, False], ids=["one batch", "two batches"])
def test_an_operator_in_event_time_order_decides_by_the_log_too(driven: Callable[..., Any], together: bool) -> None:
    """A word at 5 s comes after the watermark of 6 s in its partition, whether the shard knew that before or not."""
    first = Stream.read(points("l")).key_by("key").process(Deduplicate(by=("word",), within="1s"))
    partitioned_job = partitioned(job_of(first))
    key = point(5_000)["key"]
    here = crc32(key.encode()) % PARTITIONS
    begin: list[Entry] = [Watermark("l", p, ARRIVED, NEVER) for p in range(PARTITIONS)]
    told_six, record = Watermark("l", here, ARRIVED + 1, T0 + 6_000), Arrival("l", here, ARRIVED + 2, point(5_000))
    end: list[Entry] = [Watermark("l", p, ARRIVED + 3, T0 + 600_000) for p in range(PARTITIONS)]
    batches = [[*begin, told_six, record, *end]] if together else [[*begin, told_six], [record], end]
    run = driven(partitioned_job, 1).run(batches)
    assert (len(run.late), len(run.rows)) == (1, 0)
