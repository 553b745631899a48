"""Enrichment by versions: the table before the watermark is fixed, and what no record can need any more is dropped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Count, Stream, TemporalJoin, Tumbling
from engine.spec.errors import NewnormalError
from engine.state.part_log import PartLog
from engine.state.segments import DictSegments, ShardState
from engine.testing import RESTART, TestStream, run
from engine.testing.driven import Driven
from engine.vectorized import temporal_join as logic
from tests.engine.advertisements import T0, Ad, View
from tests.engine.operators.conftest import ARRIVED, Batch, ends, job_of, point, points, some_examples
from tests.engine.operators.test_examples import taken


def joined(**more: Any) -> Stream:
    return Stream.read(points("l")).key_by("key").join(Stream.read(points("r")), TemporalJoin(**more))


def versions(segments: DictSegments) -> list[tuple[str, int, float]]:
    """Key, instant and value of each version in the state."""
    log = PartLog(ShardState(segments), "versions")
    tables = [log.read(part)["versions"] for part in log.parts]
    return sorted(row for table in tables for row in table.select("key", "__since", "value_right").iter_rows())


some_versions = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99), st.integers(0, 9)), max_size=40)
some_views = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 99)), max_size=40)


@some_examples
@given(some_versions, some_views, st.integers(1, 7), st.integers(1, 3), st.integers(1, 16))
def test_each_record_has_the_version_that_a_sorted_list_of_its_key_says(
    changes: list[tuple[str, int, int]], views: list[tuple[str, int]], step: int, shards: int, parts: int
) -> None:
    """Independent of the reference: a sorted list for each key, searched by bisection; 0 deletes.

    Records come in steps of event time, each with the watermark at its end, after which the job is restarted.
    """
    table: dict[str, list[tuple[int, int]]] = {}
    for key, time, value in sorted(changes):
        table.setdefault(key, []).append((time, value))
    expected = []
    for key, time in views:
        at = bisect_right(table.get(key, []), (time, 99))
        if at and (value := table[key][at - 1][1]):
            expected.append((key, time, value))
    job = job_of(joined(deleted="value = 0"))
    batches: list[Batch] = []
    for begin in range(0, 100, step):
        inside = range(begin, begin + step)
        batches.append(taken("l", *(point(time, key) for key, time in views if time in inside)))
        batches[-1] += taken("r", *(point(time, key, float(value)) for key, time, value in changes if time in inside))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logic, "MOST_PARTS", parts)
        states, rows, offset = [DictSegments() for _ in range(shards)], [], 0
        for batch in [*batches, ends(job.topics)]:
            restarted = Driven(job, shards, states, offset=offset).run([batch])
            offset = restarted.offset
            rows += [(row["key"], row["time"] - T0, int(row["value_right"])) for row in restarted.rows]
    assert sorted(rows) == sorted(expected)


def test_versions_that_no_record_can_need_are_dropped_and_deleted_keys_leave_nothing(
    driven: Callable[..., Any],
) -> None:
    run = driven(job_of(joined(deleted="value > 7", allowed_lateness="5s")), 1)
    run.run([taken("r", point(1000), point(2000), point(3000, value=3.0), point(2000, "b"), point(4000, "b", 8.0))])
    run.run([_watermark(8999), _watermark(8999)])
    assert {("a", T0 + 3000, 3.0), ("b", T0 + 2000, 1.0), ("b", T0 + 4000, 8.0)} <= {*versions(run.states[0])}
    run.run([_watermark(9000), _watermark(9000)])
    assert versions(run.states[0]) == [("a", T0 + 3000, 3.0)]


def test_the_state_of_a_table_that_changes_for_ever_is_bounded(driven: Callable[..., Any]) -> None:
    run, keys = driven(job_of(joined()), 1), [f"k{number}" for number in range(200)]
    most = 0
    for number in range(300):
        changed = [keys[(7 * number + each) % 200] for each in range(5)]
        run.run([taken("r", *(point(1000 * number, key) for key in changed)), _watermark(1000 * number + 500)])
        most = max(most, len(versions(run.states[0])))
    assert 200 <= most <= 400


def test_a_few_changes_of_a_large_table_write_little(driven: Callable[..., Any]) -> None:
    run = driven(job_of(joined()), 1)
    run.run([taken("r", *(point(0, f"k{number}") for number in range(5000))), _watermark(1000)])
    before = dict(run.states[0].values)
    run.run([taken("r", point(2000, "k7", 2.0)), _watermark(3000)])
    written = {name: value for name, value in run.states[0].values.items() if before.get(name) != value}
    assert sum(map(len, written.values())) < sum(map(len, before.values())) / 10


def _watermark(time: int) -> Batch:
    return [type(end)(end.topic, end.partition, ARRIVED, T0 + time) for end in ends(("l", "r"))]  # type: ignore[union-attr, call-arg]


@pytest.mark.parametrize("on", ["reference", "operator"])
def test_late_views_count_in_their_windows_with_the_campaign_of_their_time(on: str) -> None:
    views = Stream.read_json("views", View, out_of_orderness="1s").key_by("ad")
    ads = Stream.read_json("ads", Ad)
    counts = views.join(ads, TemporalJoin(allowed_lateness="1m")).window(Tumbling("10s"), "1m").aggregate(n=Count())
    stream = TestStream(T0, topics=("views", "ads"))
    stream = stream.add({"time": T0, "ad": "x", "campaign": "p"}, topic="ads")
    stream = stream.add({"time": T0 + 5000, "ad": "x"}, topic="views").advance_watermark("20s")
    stream = stream.add(RESTART, {"time": T0 + 15_000, "ad": "x"}, {"time": T0 + 6000, "ad": "x"}, topic="views")
    found = run(counts.write("counts"), stream.advance_watermark("2m"), on=on)
    assert sorted((r["window_start"] - T0, r["n"]) for r in found.rows) == [(0, 1), (0, 2), (10_000, 1)]
    assert not found.late


@pytest.mark.parametrize("on", ["reference", "operator"])
def test_by_default_a_version_without_any_value_deletes_its_key(on: str) -> None:
    job = Stream.read_json("views", View).key_by("ad").join(Stream.read_json("ads", Ad), TemporalJoin()).write("o")
    stream = TestStream(T0, topics=("views", "ads"))
    stream = stream.add(*({"time": T0 + 10 * n, "ad": "x", "campaign": c} for n, c in enumerate("p-q")), topic="ads")
    stream = stream.add({"time": T0 + 30, "ad": "x", "campaign": None}, topic="ads")
    stream = stream.add(*({"time": T0 + 5 + 10 * n, "ad": "x"} for n in range(5)), topic="views")
    rows = run(job, stream.advance_watermark("1m"), on=on).rows
    assert [row["campaign"] for row in rows] == ["p", "-", "q"]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"how": "outer"}, "CHOICE_INVALID"),
        ({"deleted": "no_such"}, "COLUMN_UNKNOWN"),
        ({"deleted": "("}, "EXPRESSION_INVALID"),
    ],
)
def test_a_temporal_join_that_cannot_work_is_refused_when_it_is_built(more: dict[str, Any], code: str) -> None:
    with pytest.raises(NewnormalError) as refused:
        joined(**more)
    assert refused.value.code == code
