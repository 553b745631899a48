"""The number of keys that a source brings into the state of a job is bounded; known keys go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.columns.arrays import Default
from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter, positions
from engine.operators.process import Process
from engine.operators.turn import Logic, Turn
from engine.runtime.intake import KAFKA, read
from engine.runtime.rescale import rescaled
from engine.spec.job import Job
from engine.spec.most_keys import MostKeys
from engine.spec.output import Output
from engine.spec.record import Instant, Record
from engine.spec.source import Source
from engine.state.segments import DictSegments
from engine.stream import Stream
from engine.testing import TestStream
from engine.testing.driven import Driven
from engine.testing.encoding import fed_columns
from pipelines.contracts.records import Telemetry
from tests.engine.readings import Reading

T0 = 1_700_000_000_000
Key = tuple[str, str]


def job(alike: int, partition: int, partitions: int = 1, forget: int = 0) -> Job:
    formats = {"telemetry": ColumnarDecoder(Telemetry)}
    most = MostKeys(("entity", "metric"), alike, partition, forget)
    source = Source(formats, Telemetry, partitions=partitions, most_keys=most)
    dead = Output("dead", DeadLetter, "json", partitions)
    return Stream.read(source).key_by("entity", "metric").write("job", Output("out", Telemetry), dead)


def message(keys: list[Key], time: int = T0) -> bytes:
    rows = [{"time": time, "entity": e, "metric": m, "value": 1.0, "kind": "gauge"} for e, m in keys]
    return columnar.encode(pa.Table.from_pylist(rows, schema=Telemetry.arrow_schema()), 0)


def taken(
    bounded: Job,
    messages: list[list[Key]],
    state: DictSegments,
    first: int = 0,
    partition: int = 0,
    times: Sequence[int] | None = None,
) -> Any:
    """What one micro-batch takes in, and its dead letters; the messages have the same time, or those given."""
    at = times or [T0] * len(messages)
    rows = [
        dict(zip(KAFKA.names, (message(keys, time), "telemetry", partition, first + n, max(at) + 1000), strict=True))
        for n, (keys, time) in enumerate(zip(messages, at, strict=True))
    ]
    intake = read(bounded, [pa.Table.from_pylist(rows, schema=KAFKA)], 0, state)
    letters = [DeadLetter.model_validate_json(letter) for letter in intake.dead]
    return [(r["entity"], r["metric"]) for table in intake.records for r in table.to_pylist()], letters


keys = st.tuples(st.sampled_from("abc"), st.sampled_from("uvwxyz"))


@settings(deadline=None, max_examples=50)
@given(
    log=st.lists(st.lists(keys, min_size=1, max_size=5), min_size=1, max_size=12),
    cuts=st.sets(st.integers(1, 11)),
    alike=st.integers(1, 5),
    partition=st.integers(1, 12),
)
def test_the_first_keys_of_the_log_are_taken_whatever_the_micro_batches(
    log: list[list[Key]], cuts: set[int], alike: int, partition: int
) -> None:
    """One record after the other, in plain Python, decides which keys there are."""
    accepted, good, refused = set[Key](), list[Key](), dict[int, list[int]]()
    for offset, message_keys in enumerate(log):
        for position, key in enumerate(message_keys):
            fits = sum(other[0] == key[0] for other in accepted) < alike and len(accepted) < partition
            if key in accepted or fits:
                accepted.add(key)
                good.append(key)
            else:
                refused.setdefault(offset, []).append(position)
    bounded, state, got, letters = job(alike, partition), DictSegments(), list[Key](), list[DeadLetter]()
    begins = [0, *sorted(cut for cut in cuts if cut < len(log)), len(log)]
    for begin, end in pairwise(begins):
        some_good, some_letters = taken(bounded, log[begin:end], state, begin)
        got += some_good
        letters += some_letters
    assert got == good
    assert {letter.offset: positions(letter.refused or "") for letter in letters} == refused
    assert {letter.code for letter in letters} <= {"TOO_MANY_KEYS"}


@settings(deadline=None, max_examples=60)
@given(
    log=st.lists(st.tuples(st.lists(keys, min_size=1, max_size=5), st.integers(-2, 12)), min_size=1, max_size=14),
    cuts=st.sets(st.integers(1, 13)),
    partition=st.integers(1, 6),
)
def test_keys_without_records_make_room_whatever_the_micro_batches(
    log: list[tuple[list[Key], int]], cuts: set[int], partition: int
) -> None:
    """Time goes on, mostly; a key counts for 7 to 8 periods after its last record, by the newest record so far."""
    met, clock, day, good, times = dict[Key, int](), 0, 0, list[Key](), list[int]()
    for message_keys, step in log:
        day = max(day + step, 0)
        times.append(day * 1_000)
        for key in message_keys:
            if day > clock:
                clock, met = day, {other: last for other, last in met.items() if last >= day - 7}
            if key in met or len(met) < partition:
                met[key] = max(met.get(key, 0), day)
                good.append(key)
    base = T0 // 1_000 * 1_000
    bounded, state, got = job(100, partition, forget=7_000), DictSegments(), list[Key]()
    begins = [0, *sorted(cut for cut in cuts if cut < len(log)), len(log)]
    for begin, end in pairwise(begins):
        at = [base + time for time in times[begin:end]]
        got += taken(bounded, [names for names, _ in log[begin:end]], state, begin, times=at)[0]
    assert got == good


@pytest.mark.parametrize(("before", "after"), [(7_000, 70_000), (70_000, 7_000)])
def test_another_time_to_forget_counts_from_the_next_record_on(before: int, after: int) -> None:
    """The setting may change at any start: nothing that came lately is forgotten by it, and what is old is in time."""
    base, state = T0 // 70_000 * 70_000, DictSegments()
    assert taken(job(100, 2, forget=before), [[("a", "m"), ("b", "m")]], state, times=[base])[0]
    bounded = job(100, 2, forget=after)
    good, _ = taken(bounded, [[("c", "m"), ("a", "m")]], state, 1, times=[base + 1_000])
    assert good == [("a", "m")], "both are known, and there is room for no other"
    good, _ = taken(bounded, [[("c", "m")]], state, 2, times=[base + 9 * after])
    assert good == [("c", "m")], "both are forgotten"


def test_a_dead_letter_names_the_key_and_the_bounds_and_can_be_sent_again() -> None:
    state = DictSegments()
    good, (letter,) = taken(job(2, 9), [[("a", "u"), ("a", "v"), ("a", "w"), ("b", "w"), ("a", "u")]], state)
    assert good == [("a", "u"), ("a", "v"), ("b", "w"), ("a", "u")]
    assert (letter.topic, letter.partition, letter.offset, letter.records, letter.refused) == (
        "telemetry",
        0,
        0,
        5,
        "2",
    )
    assert letter.reason == (
        "a new entity and metric, such as 'a', 'w'; accepted: 2 with the same entity, 9 in a partition, and known ones"
    )


def test_a_record_that_is_refused_for_another_reason_brings_no_key() -> None:
    bounded, state = job(1, 9), DictSegments()
    early = pa.Table.from_pylist(
        [dict(zip(KAFKA.names, (message([("a", "u")], 1), "telemetry", 0, 0, T0), strict=True))]
    )
    assert not read(bounded, [early.cast(KAFKA)], 0, state).records
    assert taken(bounded, [[("a", "v")]], state) == ([("a", "v")], [])


@pytest.mark.parametrize("to", [1, 4])
def test_what_is_known_goes_to_the_shards_that_read_its_partition(to: int) -> None:
    bounded = job(2, 9, partitions=4)
    names = {crc32(name) % 4: name for name in "abcdefgh"}
    before = [DictSegments(), DictSegments()]
    for partition, name in names.items():
        taken(bounded, [[(name, "u"), (name, "v")]], before[partition % 2], partition=partition)
    after = rescaled(bounded, [state.values for state in before], to)
    for partition, name in names.items():
        state = DictSegments()
        state.values = after[partition % to]
        good, letters = taken(bounded, [[(name, "w"), (name, "v")]], state, partition=partition)
        assert good == [(name, "v")], "the third is one too many, the second is known"
        assert len(letters) == 1


def test_a_source_without_a_bound_keeps_no_keys() -> None:
    made, state = job(1, 1), DictSegments()
    free = replace(made, inputs=(replace(made.inputs[0], most_keys=None),))
    good, letters = taken(free, [[("a", "u"), ("a", "v")]], state)
    assert (len(good), letters, state.values) == (2, [], {})


class Count(Record):
    """How many records a key has had, at an instant."""

    time: Instant
    k: str
    n: int


class Counted(Logic):
    """How many records a key has had."""

    state: ClassVar[Mapping[str, Default]] = {"n": 0}

    def on_records(self, turn: Turn) -> None:
        turn.state["n"] = turn.state["n"] + 1
        turn.emit({"n": turn.state["n"]})


def test_an_operator_refuses_keys_beyond_the_most_alone_and_tells_of_them_once_a_micro_batch() -> None:
    most = MostKeys(("k",), 2, 2)
    made = Stream.read_json("t", Reading).key_by("k").process(Process(Counted(), most=most)).write("o", Count)
    names = [*"ab", *(f"invented-{n}" for n in range(500)), "a"]
    rows = [{"time": T0 + n, "k": name} for n, name in enumerate(names)]
    batches = TestStream(T0).add(*rows).advance_watermark("1m").batches
    run = Driven(fed_columns(made)).run([batch.entries for batch in batches])
    assert sorted((row["k"], row["n"]) for row in run.rows) == [("a", 1), ("a", 2), ("b", 1)]
    letters = [DeadLetter.model_validate(letter) for letter in run.dead]
    assert {(letter.code, letter.records, letter.topic) for letter in letters} == {("TOO_MANY_KEYS", 500, "o")}
    assert "a new k, such as 'invented-0'; accepted: 2 in a partition" in letters[0].reason
    assert len(letters) == 1
