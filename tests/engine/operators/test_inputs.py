"""Several inputs of one job: one watermark over all of them, loops, direct routing, steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns.partitioning import crc32
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.operators.deduplicate import Deduplicate
from engine.operators.process import Process
from engine.operators.turn import Logic, Turn
from engine.reference import Arrival, Heartbeat, Watermark, interpret
from engine.spec.duration import NEVER
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Keyword, Record
from engine.spec.source import Source
from engine.stream import Stream
from tests.engine.operators.conftest import (
    ARRIVED,
    T0,
    Batch,
    Check,
    Point,
    any_batches,
    arrivals,
    ends,
    job_of,
    point,
    points,
    rules,
    some_examples,
)

HOUR = 3_600_000


def both(**more: Any) -> Job:
    merged = Stream.read(points("l", **more)).merge(Stream.read(points("r", **more)))
    return job_of(merged.key_by("key").process(Deduplicate(by=("word",), within="1s")))


def test_the_watermark_is_the_least_over_the_partitions_of_all_inputs(driven: Callable[..., Any]) -> None:
    batches: list[Batch] = [
        [Watermark("l", 0, ARRIVED, T0 + 9000)],
        [Watermark("r", 0, ARRIVED, T0 + 5000), Watermark("r", 1, ARRIVED, T0 + 7000)],
        [Watermark("r", 0, ARRIVED, T0 + 8000)],
        [Watermark("r", 1, ARRIVED, T0 + 20_000), Watermark("r", 0, ARRIVED, T0 + 20_000)],
    ]
    wanted = [NEVER, T0 + 5000, T0 + 7000, T0 + 9000]
    assert driven(both(), 2).run(batches).watermarks == interpret(both(), batches).watermarks == wanted


def test_a_silent_input_is_not_waited_for(driven: Callable[..., Any]) -> None:
    def spoke(topic: str, time: int, arrived: int) -> Arrival:
        return Arrival(topic, 0, arrived, point(time))

    batches: list[Batch] = [
        [spoke("l", 1000, ARRIVED), spoke("r", 500, ARRIVED)],
        [spoke("l", 9000, ARRIVED + 2 * HOUR)],
        [Heartbeat("r", 0, ARRIVED + 2 * HOUR)],
    ]
    wanted = [T0 + 500, T0 + 500, T0 + 9000]
    assert driven(both(), 1).run(batches).watermarks == interpret(both(), batches).watermarks == wanted


@some_examples
@given(data=st.data(), shards=st.sampled_from([1, 2]))
def test_direct_routing_of_several_inputs_gives_the_same(agrees: Check, data: st.DataObject, shards: int) -> None:
    job = both(bound="1h", partitions=2)
    assert job.direct(shards)
    found = [replace(e, partition=crc32(e.record["key"]) % 2) for e in data.draw(arrivals(("l", "r")))]
    cut = data.draw(st.integers(0, len(found)))
    agrees(job, [list(found[:cut]), list(found[cut:]), ends(("l", "r"))], shards, [list(found), ends(("l", "r"))])


def test_one_input_that_is_not_partitioned_by_key_sends_all_through_the_map_side() -> None:
    mixed = Stream.read(points("l", partitions=2)).merge(Stream.read(points("r"))).key_by("key")
    assert not job_of(mixed).direct(2)
    moved = Stream.read(points("l", partitions=2)).map(key="word").key_by("key")
    assert not job_of(moved).direct(2), "a step may change the key"
    assert job_of(Stream.read(points("l", partitions=2)).filter("value > 1").key_by("key")).direct(2)
    assert not job_of(Stream.read(points("l", partitions=2)).key_by("word")).direct(2)


class Other(Record):
    """A record whose columns do not go with those of `Point`."""

    identity = ("key",)

    time: int
    key: Keyword
    value: str


def test_inputs_that_do_not_go_together_are_refused() -> None:
    other = Source({"o": ColumnarDecoder(Other)}, Other)
    with pytest.raises(NewnormalError, match="INPUTS_CLASH"):
        job_of(Stream.read(points("l")).merge(Stream.read(other)).key_by("key"))
    with pytest.raises(NewnormalError, match="INPUTS_CLASH"):
        job_of(Stream.read(points("l")).merge(Stream.read(replace(other, time="at"))).key_by("key"))
    renamed = Stream.read(other).select("time", "key", word="value")
    assert job_of(Stream.read(points("l")).merge(renamed).key_by("key")).topics == ["l", "o"]


class Countdown(Logic):
    """Answers each record with the next smaller value, a second later, until 0."""

    def on_records(self, turn: Turn) -> None:
        turn.emit({"value": turn["value"] - 1, "word": turn["word"]}, where=turn["value"] > 0, at=turn.time + 1000)


def feedback(loop: bool) -> Job:
    stream, back = Stream.read(points("l")), points("back")
    stream = stream.loop(back) if loop else stream.merge(Stream.read(back))
    counted = stream.key_by("key").process(Process(Countdown()))
    return counted.write("job", Output("back", Point), Output("dead", DeadLetter, "json"), Output("late", Point))


def looped(driven: Callable[..., Any], job: Job) -> Any:
    """Runs a job and hands it what it writes, until it writes nothing more."""
    run = driven(job, 2).run([[Arrival("l", 0, ARRIVED, point(t, k, 3.0)) for t, k in ((0, "a"), (500, "b"))]])
    run.run([[Watermark("l", 0, ARRIVED, T0 + 60_000)]])
    seen = 0
    while seen < len(run.rows):
        new, seen = run.rows[seen:], len(run.rows)
        told = Watermark("l", 0, ARRIVED, T0 + 60_000 + 10_000 * seen)
        run.run([[told, *(Arrival("back", 0, ARRIVED, row) for row in new)]])
    return run


def test_a_job_may_read_what_it_writes_and_its_watermark_does_not_wait_for_itself(driven: Callable[..., Any]) -> None:
    run = looped(driven, feedback(loop=True))
    assert sorted((row["key"], row["value"]) for row in run.rows) == [(k, v) for k in "ab" for v in (0.0, 1.0, 2.0)]
    assert run.late == []
    assert run.watermarks[-1] == T0 + 60_000 + 10_000 * len(run.rows)


def test_as_a_plain_input_it_would_wait_for_itself_and_is_refused() -> None:
    with pytest.raises(NewnormalError, match="OUTPUT_READ"):
        feedback(loop=False)


def twice(frame: pl.DataFrame) -> pl.DataFrame:
    """Each record, and once more with the opposite value."""
    return pl.concat([frame, frame.with_columns(-pl.col("value"))])


def longer(table: pa.Table) -> pa.Table:
    """The value times ten, in Arrow."""
    at = table.schema.get_field_index("value")
    return table.set_column(at, "value", pc.multiply(table.column(at), 10.0))


STEPS: dict[str, Callable[[Stream], Stream]] = {
    "filter": lambda s: s.filter("value > 1 OR word = 'x'"),
    "map": lambda s: s.map(value="value * 2 + 1", word="CASE WHEN value > 1 THEN 'big' ELSE word END"),
    "select": lambda s: s.select("time", "key", total="value"),
    "function": lambda s: s.map(longer, arrow=True).flat_map(twice),
    "new key": lambda s: s.map(key="word"),
    "list": lambda s: s.map(word="STRING_TO_ARRAY(word || ',' || key, ',')").flat_map("word"),
}


@pytest.mark.parametrize("name", STEPS)
@some_examples
@given(data=st.data(), shards=st.integers(1, 3), partitions=st.sampled_from([0, 2]))
def test_steps_give_on_columns_what_they_give_row_by_row(
    agrees: Check, name: str, data: st.DataObject, shards: int, partitions: int
) -> None:
    job = job_of(STEPS[name](Stream.read(points("l", partitions=partitions))).key_by("key"))
    batches = data.draw(any_batches(("l",)))
    if partitions:
        batches = [
            [replace(e, partition=crc32(e.record["key"]) % 2) if isinstance(e, Arrival) else e for e in batch]
            for batch in batches
        ]
    agrees(job, batches, shards, at_once=batches)


def test_records_that_a_filter_drops_move_the_watermark_all_the_same(driven: Callable[..., Any]) -> None:
    job = job_of(Stream.read(points("l")).filter("value > 5").key_by("key"))
    assert driven(job).run([[Arrival("l", 0, ARRIVED, point(7000))]]).watermarks == [T0 + 7000]


def test_an_operator_after_which_nothing_can_be_merged_says_so() -> None:
    stream = Stream.read(points("l")).key_by("key").process(Deduplicate(by=("word",)))
    with pytest.raises(NewnormalError, match="STREAM_ORDER"):
        stream.merge(Stream.read(rules()))
    with pytest.raises(NewnormalError, match="EXPRESSION_INVALID"):
        stream.filter("value >")
