"""A large micro-batch is processed in portions: nothing is left out, and the results are those of the whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.formats import columnar
from engine.formats.decoded_size import decoded_bytes
from engine.runtime.intake import KAFKA
from engine.runtime.messages import Message
from engine.runtime.portions import portions
from engine.runtime.shard import STATS, Stats
from engine.spark import shard_task
from engine.spark.bundles import unbundled
from engine.spec.duration import END_OF_TIME, NEVER
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.job import detector
from tests.chaos.runs.verifier.finding import Tally
from tests.chaos.runs.verifier.verdict_checks import check_reference, newest
from tests.pipelines.detectors.test_any_number_of_shards import log


def kafka(messages: list[tuple[str, int, bytes, int]]) -> pa.Table:
    """Messages (topic, partition, value, arrival) as rows of Kafka, ordered as a shard gets them."""
    rows = [dict(zip(KAFKA.names, (v, t, p, n, at), strict=True)) for n, (t, p, v, at) in enumerate(messages)]
    ordered = sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))
    return pa.Table.from_pylist(ordered, schema=KAFKA)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.binary(max_size=9)), max_size=40), st.data())
def test_portions_follow_each_other_in_each_partition_and_leave_nothing_out(
    messages: list[tuple[str, int, bytes]], data: st.DataObject
) -> None:
    rows = kafka([(*message, 0) for message in messages])
    parts = list(portions(rows, most=data.draw(st.integers(1, 200))))
    assert pa.concat_tables(parts).num_rows == rows.num_rows
    for topic, partition in {(topic, partition) for topic, partition, _ in messages}:
        of = [
            [r["offset"] for r in part.to_pylist() if (r["topic"], r["partition"]) == (topic, partition)]
            for part in (rows, *parts)
        ]
        assert [offset for part in of[1:] for offset in part] == of[0]


def test_a_portion_has_about_as_many_bytes_as_it_may() -> None:
    rows = kafka([("a", n % 3, b"x" * 100, 0) for n in range(300)])
    sizes = [sum(map(len, some["value"].to_pylist())) for some in portions(rows, 2_000)]
    assert len(sizes) == 15 and max(sizes) <= 2_100 and min(sizes) >= 1_800


def test_what_messages_become_without_compression_decides_how_many_are_in_a_portion() -> None:
    """Names of 300 letters that are alike are a twentieth of that in a message: an agent may send many of them."""
    names = pa.array(["a" * 300 + str(n) for n in range(10_000)]).dictionary_encode()
    table = pa.table({"time": pa.array([7] * 10_000), "name": names, "value": pa.array([1.0] * 10_000)})
    message = columnar.encode(table, 5)
    assert table.nbytes > 10 * len(message)
    rows = kafka([("a", 0, message, 0)] * 40 + [("a", 1, b"no Arrow stream", 0)] * 3)
    sizes = [some.filter(pc.equal(some["partition"], 0)).num_rows for some in portions(rows, 5 * table.nbytes)]
    assert sum(sizes) == 40 and max(sizes) <= 6 and min(sizes) >= 3


class DictState:
    """Spark's map state, in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[tuple[str], tuple[bytes]] = {}

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:  # noqa: N802
        return self.values.get(key)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:  # noqa: N802
        self.values[key] = value

    def removeKey(self, key: tuple[str]) -> None:  # noqa: N802
        self.values.pop(key, None)


def _processed(steps: list[list[Any]]) -> tuple[list[Message], Stats]:
    """What the task of the only shard of the detector writes in one micro-batch, and its statistics."""
    frame = kafka([message for step in steps for message in step]).to_pandas().assign(shard=0)
    job, state = detector(load(**{"detector.emit": "all", "window.allowed_lateness": "50s"})), DictState()
    rows: Iterator[pd.DataFrame] = iter([frame])
    found = shard_task.processed(job, 1, None, None, state, rows)  # type: ignore[arg-type]
    messages = [message for some in unbundled(pa.Table.from_pandas(found)) for message in some]
    (stats,) = (Stats.of(message) for message in messages if message.topic == STATS)
    return [message for message in messages if message.topic == job.output.topic], stats


def test_the_results_of_portions_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, all_at_once = _processed(log())
    size = sum(len(value) for step in log() for _, _, value, _ in step)
    read = list[pa.Table]()

    def quarters(rows: pa.Table) -> Iterator[pa.Table]:
        for portion in portions(rows, most=-(-size // 4)):
            read.append(portion)
            yield portion

    monkeypatch.setattr(shard_task, "portions", quarters)
    parts, in_portions = _processed(log())
    assert len(read) >= 4
    assert len(parts) == in_portions.records_out
    assert len(whole) == all_at_once.records_out > 1_000
    assert in_portions.records_in == all_at_once.records_in
    assert in_portions.watermark == all_at_once.watermark > NEVER
    tally = Tally()
    check_reference(tally, *(newest((json.loads(one.value) for one in some), END_OF_TIME) for some in (parts, whole)))
    assert not tally.findings, "\n".join(map(str, tally.findings))


def test_columns_without_compression_weigh_what_they_are_and_make_no_more_portions_than_messages() -> None:
    """Their first bytes are values, not sizes: taken for sizes, they would be 10^18 bytes, and as many portions."""
    table = pa.table({"value": [1.5, 2.5, 3.5]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    message = sink.getvalue()
    assert decoded_bytes(message) == message.size
    rows = kafka([("a", 0, message.to_pybytes(), 0)] * 3)
    assert [portion.num_rows for portion in portions(rows, message.size)] == [1, 1, 1]
    assert [portion.num_rows for portion in portions(rows, 1)] == [1, 1, 1]
