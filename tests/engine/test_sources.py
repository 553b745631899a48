"""From Kafka messages to shards: dead letters, partitions, shards, and state as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from engine.aggregates import Count
from engine.columns.partitioning import crc32, slots
from engine.formats import columnar
from engine.formats.columnar import ColumnarDecoder
from engine.formats.dead_letters import DeadLetter
from engine.reference import Arrival
from engine.runtime import intake, reading
from engine.spec.decoder import Messages
from engine.spec.job import Job
from engine.spec.output import Output
from engine.spec.record import Keyword, Record
from engine.spec.source import Source
from engine.spec.too_large import STAND_IN
from engine.state.segments import pack, unpack
from engine.stream import Stream
from engine.windows import Tumbling
from pipelines.contracts.records import Telemetry

T0 = 1_700_000_000_000


def row(**changed: Any) -> dict[str, Any]:
    return {"time": T0, "entity": "a", "metric": "m", "value": 1.0, "kind": "gauge"} | changed


def message(*rows: dict[str, Any], watermark: int = 0) -> bytes:
    return columnar.encode(pa.Table.from_pylist(list(rows), schema=Telemetry.arrow_schema()), watermark)


def read(*values: bytes | None) -> tuple[pa.Table, Any, list[DeadLetter]]:
    n = len(values)
    offsets, arrived = np.arange(100, 100 + n), np.full(n, T0 + 1000)
    messages = Messages("telemetry", 3, pa.array(values, pa.binary()), offsets, arrived)
    return reading.read(Source({"telemetry": ColumnarDecoder(Telemetry)}, Telemetry), messages, "job")


def passed_on(partitions: int = 4, kind: Any = "columnar") -> Job:
    stream = Stream.read(Source({"telemetry": ColumnarDecoder(Telemetry)}, Telemetry)).key_by("entity")
    out = Output("out", Telemetry, kind, partitions)
    return stream.write("job", out, Output("dead", DeadLetter, "json", partitions))


def test_a_record_that_the_client_did_not_decompress_is_a_dead_letter_with_its_place_and_size() -> None:
    records, marker, dead = read(message(row()), STAND_IN + b"950000007", message(row(entity="b")), STAND_IN + b"-1")
    assert records.column("entity").to_pylist() == ["a", "b"]
    assert [(each.code, each.topic, each.partition, each.offset) for each in dead] == [
        ("RECORD_TOO_LARGE", "telemetry", 3, 101),
        ("RECORD_TOO_LARGE", "telemetry", 3, 103),
    ]
    assert dead[0].reason.startswith("950,000,007 bytes without compression; accepted: 16,777,216 in a record")
    assert dead[1].reason.startswith("it lies behind too many bytes of its batch; accepted")
    assert marker.max_time == T0


def test_a_dead_letter_says_where_it_came_from_and_why() -> None:
    records, marker, dead = read(message(row()), b"junk", message(row(entity="b")))
    assert records.num_rows == 2
    (letter,) = dead
    assert (letter.job, letter.topic, letter.partition, letter.offset) == ("job", "telemetry", 3, 101)
    assert (letter.code, letter.payload, letter.time) == ("COLUMNAR_BROKEN", "junk", T0 + 1000)
    assert marker.max_time == T0


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (row(time=T0 + 120_000), "TIME_AHEAD"),
        (row(time=0), "TIME_TOO_EARLY"),
        (row(time=-(2**53)), "TIME_TOO_EARLY"),
        (row(value=float("nan")), "VALUE_INVALID"),
        (row(value=float("-inf")), "VALUE_INVALID"),
        (row(value=1e200), "VALUE_INVALID"),
        (row(entity=""), "VALUE_INVALID"),
    ],
)
def test_a_bad_record_goes_and_its_neighbours_stay(bad: dict[str, Any], code: str) -> None:
    records, marker, dead = read(message(row(), bad, row(value=2.0)), message(row(value=3.0)))
    assert records.column("value").to_pylist() == [1.0, 2.0, 3.0]
    assert [(letter.code, letter.offset) for letter in dead] == [(code, 100)]
    assert marker.max_time == T0


def test_a_message_of_nothing_is_a_dead_letter() -> None:
    records, _, dead = read(None, b"")
    assert records.num_rows == 0
    assert [letter.offset for letter in dead] == [100, 101]


@pytest.mark.parametrize("watermark", [10**29, -(10**29), 2**63 - 1])
def test_a_watermark_beyond_all_bounds_is_cut(watermark: int) -> None:
    assert read(message(row(), watermark=watermark))[1].writer_watermark <= T0 + 1000 + 60_000


def test_dead_letters_reach_the_dead_letter_topic_once(driven: Callable[..., Any]) -> None:
    values = [b"\x00\xff{", message(row())]
    task = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "topic": ["telemetry"] * 2,
            "partition": pa.array([5, 5], pa.int32()),
            "offset": pa.array([7, 8], pa.int64()),
            "arrived": pa.array([T0, T0], pa.int64()),
        }
    )
    run = driven(passed_on(), 4).kafka([task])
    (letter,) = run.dead
    assert (letter["kafka.topic"], letter["kafka.partition"], letter["kafka.offset"]) == ("telemetry", 5, 7)
    assert len(run.rows) == 1


def test_kafka_rows_are_cut_where_topic_or_partition_change() -> None:
    rows = [("t", 0), ("t", 0), ("t", 1), ("u", 1), ("t", 1)]
    table = pa.table(
        {
            "value": pa.array([b"x"] * 5, pa.binary()),
            "topic": [t for t, _ in rows],
            "partition": pa.array([p for _, p in rows], pa.int32()),
            "offset": pa.array(range(5), pa.int64()),
            "arrived": pa.array([T0] * 5, pa.int64()),
        }
    )
    cut = [(m.topic, m.partition, m.offsets.tolist()) for m in intake.runs(table)]
    assert cut == [("t", 0, [0, 1]), ("t", 1, [2]), ("u", 1, [3]), ("t", 1, [4])]
    assert list(intake.runs(table.slice(0, 0))) == []


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@settings(deadline=None, max_examples=40)
@given(entities=st.lists(names, min_size=1, max_size=20), shards=st.sampled_from([1, 2, 4]))
def test_each_partition_is_written_by_the_shard_that_it_is_congruent_to(
    driven: Callable[..., Any], entities: list[str], shards: int
) -> None:
    batch = [Arrival("telemetry", 0, T0, row(entity=e)) for e in entities]
    run = driven(passed_on(partitions=8), shards).run([batch])
    assert sorted(r["entity"] for r in run.rows) == sorted(entities)
    for shard, wrote in run.messages:
        assert wrote.partition % shards == shard
        for record in columnar.decode(wrote.value, Telemetry.arrow_schema())[0].to_pylist():
            assert crc32(record["entity"]) % 8 == wrote.partition


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_every_partition_gets_a_heartbeat_when_the_watermark_moves(driven: Callable[..., Any], shards: int) -> None:
    run = driven(passed_on(), shards).run([[Arrival("telemetry", 0, T0, row())]])
    writer_watermark = {m.partition: columnar.decode(m.value, Telemetry.arrow_schema())[1] for _, m in run.messages}
    assert writer_watermark == dict.fromkeys(range(4), T0)
    before = len(run.messages)
    run.run([[]])
    assert len(run.messages) == before, "nothing new, no heartbeat"


def test_json_output_is_by_alias_and_keyed(driven: Callable[..., Any]) -> None:
    run = driven(passed_on(kind="json"), 2).run([[Arrival("telemetry", 0, T0, row(entity="é")) for _ in range(2)]])
    assert [m.key.decode() for _, m in run.messages] == ["é", "é"]
    assert run.rows[0] == {"@timestamp": T0, "host.name": "é", "metric": "m", "value": 1.0, "kind": "gauge"}
    assert Telemetry.from_json(run.messages[0][1].value).entity == "é"


@settings(deadline=None)
@given(keys=st.lists(names, max_size=20), n=st.integers(1, 7))
def test_a_slot_depends_on_the_key_alone_whatever_the_column_looks_like(keys: list[str], n: int) -> None:
    expected = [crc32(key) % n for key in keys]
    plain = pa.chunked_array([keys], pa.string())
    assert slots(plain, n).tolist() == expected
    assert slots(plain.dictionary_encode(), n).tolist() == expected
    assert slots(pl.Series(keys, dtype=pl.String), n).tolist() == expected
    assert slots(pl.Series(keys, dtype=pl.String).cast(pl.Categorical), n).tolist() == expected
    halves = pa.chunked_array([keys[: len(keys) // 2], keys[len(keys) // 2 :]], pa.string())
    assert slots(halves.dictionary_encode(), n).tolist() == expected


columns = st.lists(st.tuples(names, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)), max_size=10)


@settings(deadline=None)
@given(tables=st.dictionaries(names, columns, max_size=4))
def test_state_comes_back_as_it_was(tables: dict[str, list[tuple[str, int, float]]]) -> None:
    schema = {"entity": pl.Categorical, "n": pl.Int64, "x": pl.Float64}
    frames = {name: pl.DataFrame(rows, schema, orient="row") for name, rows in tables.items()}
    again = unpack(pack(frames))
    assert again.keys() == frames.keys()
    for name, frame in frames.items():
        assert_frame_equal(again[name], frame)


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_a_topic_partitioned_by_key_gives_the_same_without_a_map_side(driven: Callable[..., Any], shards: int) -> None:
    names = [f"host-{i}" for i in range(20)]
    batches = [[_sample(name, T0 + t) for name in names for t in range(at, at + 5000, 500)] for at in (0, 5000, 10_000)]
    routed, direct = (driven(_counted(partitions), shards).run(batches) for partitions in (0, 4))
    assert direct.dead == []
    assert direct.final() == routed.final()
    assert len(direct.final()) == 20


def test_a_record_in_the_partition_of_another_key_is_a_dead_letter(driven: Callable[..., Any]) -> None:
    good = _sample("host-1", T0)
    astray = Arrival(good.topic, (good.partition + 1) % 4, good.arrived, good.record)
    run = driven(_counted(4), 2).run([[good, astray]])
    assert [letter["error.code"] for letter in run.dead] == ["KEY_ASTRAY"]


class Counted(Record):
    """Records of a window."""

    identity = ("entity", "metric", "window_end")

    entity: Keyword
    metric: Keyword
    window_end: int
    revision: int
    n: int


def _sample(entity: str, time: int) -> Arrival:
    record = {"time": time, "entity": entity, "metric": "m", "value": 1.0, "kind": "gauge"}
    return Arrival("t", crc32(entity) % 4, T0 + 3_600_000, record)


def _counted(partitions: int) -> Job:
    source = Source({"t": ColumnarDecoder(Telemetry)}, Telemetry, partitions=partitions)
    stream = Stream.read(source).key_by("entity", "metric").window(Tumbling("10s")).aggregate(n=Count())
    return stream.write("job", Output("out", Counted), Output("dead", DeadLetter, "json"))
