"""An agent that invents series fills no state: the jobs that first meet a series take in so many of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.runtime.intake import KAFKA, read
from engine.spec.job import Job
from engine.spec.record import Record
from engine.state.segments import DictSegments
from pipelines.contracts.records import LogFeatures, Telemetry
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.detectors.job import log_detector
from pipelines.jobs.extractor import extractor

T0 = 1_700_000_000_000
MOST, SHARE = 100, 250
SAMPLE = {"time": T0, "value": 1.0, "kind": "gauge"}
COUNTS = {"window_start": T0, "window_end": T0 + 10_000, "kind": "count", "count": 1, "severity": 6, "revision": 0}


@pytest.mark.parametrize(
    ("job", "record", "fields"), [(extractor, Telemetry, SAMPLE), (log_detector, LogFeatures, COUNTS)]
)
def test_a_machine_and_a_partition_have_at_most_so_many_series_and_known_ones_go_on(
    job: Callable[[Settings], Job], record: type[Record], fields: dict[str, Any]
) -> None:
    settings = load(**{"input.max_series": 1000, "input.max_series_per_machine": MOST})
    made, state = job(settings), DictSegments()
    machines = [f"h{n}" for n in range(40) if crc32(f"h{n}") % settings.kafka.partitions == 0][:4]
    offset = 0

    def sent(*series: tuple[str, str]) -> tuple[int, list[bytes]]:
        nonlocal offset
        rows = [{**fields, "entity": machine, "metric": metric} for machine, metric in series]
        schema = record.arrow_schema()
        table = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)
        value = columnar.encode(table, 0)
        offset += 1
        message = dict(zip(KAFKA.names, (value, made.topics[0], 0, offset, T0 + 20_000), strict=True))
        intake = read(made, [pa.Table.from_pylist([message], schema=KAFKA)], 0, state)
        return sum(each.num_rows for each in intake.records), intake.dead

    known = (machines[0], "honest")
    assert sent(known) == (1, [])
    good, (letter,) = sent(*[(machines[0], f"invented-{n}") for n in range(5_000)])
    assert good == MOST - 1
    assert b'"error.code":"TOO_MANY_KEYS"' in letter
    assert sent((machines[1], "honest")) == (1, []), "another machine is not concerned"
    good, _ = sent(*[(machine, f"invented-{n}") for machine in machines[1:] for n in range(MOST)])
    assert good == SHARE - MOST - 1, "the partition has its share of input.max_series"
    good, (letter,) = sent(known, (machines[1], "honest"), (machines[3], "new"))
    assert good == 2
    assert b'"kafka.offset":5' in letter
