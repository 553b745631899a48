"""Samples of twelve machines, one a second, as the normalizer writes them; and the windows that follow from them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from engine.columns.partitioning import slots
from engine.formats.columnar import decode, encode
from pipelines.contracts.records import Features, Telemetry

PARTITIONS = range(4)
MACHINES = range(12)
SECOND = 1_000
SCHEMA = Telemetry.arrow_schema()

_PARTITION = slots(pa.chunked_array([pa.array([f"m-{n}" for n in MACHINES]).dictionary_encode()]), len(PARTITIONS))


def messages(start: int, seconds: range, watermark: int) -> Iterator[tuple[int, int, bytes]]:
    """Partition, arrival and value of each message: one for five seconds, and a last one that has only a watermark.

    Args:
        start: Epoch milliseconds from which the seconds count.
        seconds: The seconds that have samples.
        watermark: The second of the last watermark.
    """
    for begin in range(seconds.start, seconds.stop, 5):
        for partition in PARTITIONS:
            rows = [
                {"time": start + s * SECOND, "entity": f"m-{n}", "metric": "cpu", "value": value(n, s), "kind": "gauge"}
                for s in range(begin, begin + 5)
                for n in np.flatnonzero(partition == _PARTITION).tolist()
            ]
            table = pa.Table.from_pylist(rows, SCHEMA)
            yield partition, start + (begin + 5) * SECOND, encode(table, start + (begin + 4) * SECOND)
    for partition in PARTITIONS:
        yield partition, start + seconds.stop * SECOND, encode(SCHEMA.empty_table(), start + watermark * SECOND)


def value(machine: int, second: int) -> float:
    """The value of a sample."""
    return float(second * machine % 17)


def window(machine: int, begin: int) -> tuple[Any, ...]:
    """The statistics of the ten seconds from a second on, from the definition of the samples."""
    values = [value(machine, second) for second in range(begin, begin + 10)]
    return len(values), round(statistics.mean(values), 9), min(values), max(values), values[-1]


def windows(written: list[bytes]) -> dict[tuple[str, int], tuple[Any, ...]]:
    """The windows in messages of the extractor, with the statistics of `window`; none may be there twice."""
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    for message in written:
        for row in decode(message, Features.arrow_schema())[0].to_pylist():
            key = row["entity"], row["window_start"]
            assert key not in found, f"{key} was written twice"
            found[key] = (row["count"], round(row["mean"], 9), row["min"], row["max"], row["last"])
    return found
