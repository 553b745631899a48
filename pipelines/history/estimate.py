"""Says what an import would bring, before it: from parts of the time that are read, and by what came live lately."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import KafkaException

from engine.formats.columnar import decode
from engine.kafka.content import between
from engine.kafka.offsets import KafkaOffsets
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from pipelines.history.importing import MINUTE_MS, HistorySource, series_of
from pipelines.history.intake import Intake, TooMuchError, too_large

_PROBES, _PROBE_MS = 8, 10 * MINUTE_MS
_LAST = 50
"""Messages of a partition in which the series are looked for that come live."""

Series = set[tuple[str, str]]


@dataclass
class Estimate:
    """What an import would bring.

    Attributes:
        series: Number of series.
        samples: Number of samples.
        size: Bytes in the archive.
        seconds: How long it would take.
        names: Machine and metric of the series that were seen.
        exact: True if all samples were read.
    """

    series: int
    samples: int
    size: int
    seconds: float
    names: Series
    exact: bool = False


def probed(source: HistorySource, intake: Intake, begin: int, end: int) -> Estimate:
    """The estimate from some minutes that are spread over the time.

    Args:
        source: Where history comes from.
        intake: What makes samples of it; it counts what is refused in these minutes.
        begin: First event time, epoch milliseconds.
        end: The event time behind the last one.

    Raises:
        NewnormalError: ``IMPORT_TOO_LARGE``, and those of the source.
        StoppedError: If the import was stopped.
    """
    names: Series = set()
    samples, size, read, began = 0, 0, 0, time.monotonic()
    length = min(_PROBE_MS, max(1, (end - begin) // _PROBES))
    for n in range(_PROBES):
        first = begin + (end - begin - length) * n // (_PROBES - 1)
        try:
            records, covered = source.read(first, first + length, intake), length
        except TooMuchError:
            minute = min(length, MINUTE_MS)
            records, covered = _minute(source, intake, first, first + minute), length // minute * minute
            records = pa.concat_tables([records] * (length // minute))
        names |= series_of(records)
        samples += records.num_rows
        size += stored_size(records)
        read += covered
    took, share = time.monotonic() - began, (end - begin) / read
    series = source.series(begin, end)
    return Estimate(
        len(names) if series is None else series, round(samples * share), round(size * share), took * share, names
    )


def _minute(source: HistorySource, intake: Intake, begin: int, end: int) -> pa.Table:
    """The samples of the shortest time that an import asks for."""
    try:
        return source.read(begin, end, intake)
    except TooMuchError as error:
        raise too_large(f"{error} between {iso(begin)} and {iso(end)}", source.origin) from None


def counted(tables: Iterable[pa.Table]) -> tuple[Estimate, int, int]:
    """The exact counts of samples that are all read; and the first event time and the one behind the last."""
    names: Series = set()
    samples, size, first, last, began = 0, 0, 2**62, 0, time.monotonic()
    for table in tables:
        if table.num_rows:
            times = table["time"].to_numpy()
            first, last = min(first, int(times.min())), max(last, int(times.max()) + 1)
        names |= series_of(table)
        samples += table.num_rows
        size += stored_size(table)
    return Estimate(len(names), samples, size, 2 * (time.monotonic() - began), names, exact=True), first, last


def stored_size(records: pa.Table) -> int:
    """About how many bytes some records take in the archive."""
    if not records.num_rows:
        return 0
    sink = pa.BufferOutputStream()
    pq.write_table(
        records.sort_by("time"), sink, compression="zstd", use_dictionary=["entity", "metric", "kind"],
        column_encoding={"time": "DELTA_BINARY_PACKED"},
    )  # fmt: skip
    return int(sink.tell())


def live_series(bootstrap: str, topic: str) -> Series:
    """Machine and metric of the series in the last messages of the log; empty if they are not known."""
    found: Series = set()
    try:
        offsets = KafkaOffsets(bootstrap, [topic])
        starts, ends = offsets.starts(), offsets.ends()
        for message in between(bootstrap, {at: (max(starts[at], end - _LAST), end) for at, end in ends.items()}):
            table, _ = decode(message.value() or b"", Telemetry.arrow_schema())
            found |= series_of(table)
    except (KafkaException, TimeoutError, NewnormalError):
        return set()
    return found
