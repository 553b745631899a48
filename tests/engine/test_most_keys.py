"""The number of keys that a source brings into the state of a job is bounded; known keys go on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter, positions
from engine.runtime.intake import KAFKA, read
from engine.runtime.rescale import rescaled
from engine.spec.job import Job
from engine.spec.most_keys import MostKeys
from engine.spec.output import Output
from engine.spec.source import Source
from engine.state.segments import DictSegments
from engine.stream import Stream
from pipelines.contracts.records import Telemetry

T0 = 1_700_000_000_000
Key = tuple[str, str]


def job(alike: int, partition: int, partitions: int = 1) -> Job:
    formats = {"telemetry": ColumnarDecoder(Telemetry)}
    most = MostKeys(("entity", "metric"), alike, partition)
    source = Source(formats, Telemetry, partitions=partitions, most_keys=most)
    dead = Output("dead", DeadLetter, "json", partitions)
    return Stream.read(source).key_by("entity", "metric").write("job", Output("out", Telemetry), dead)


def message(keys: list[Key], time: int = T0) -> bytes:
    rows = [{"time": time, "entity": e, "metric": m, "value": 1.0, "kind": "gauge"} for e, m in keys]
    return columnar.encode(pa.Table.from_pylist(rows, schema=Telemetry.arrow_schema()), 0)


def taken(bounded: Job, messages: list[list[Key]], state: DictSegments, first: int = 0, partition: int = 0) -> Any:
    """What one micro-batch takes in, and its dead letters."""
    rows = [
        dict(zip(KAFKA.names, (message(keys), "telemetry", partition, first + n, T0 + 1000), strict=True))
        for n, keys in enumerate(messages)
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
