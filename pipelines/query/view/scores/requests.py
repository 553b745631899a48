"""Scores as requests of Prometheus' remote write 1.0, whose messages are those that the gateway reads.

Source: Prometheus Remote-Write 1.0 specification. Labels are sorted by name; a series that will have no more samples
ends with a stale marker, a NaN of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from pipelines.formats.remote_write_protocol import Label, WriteRequest
from pipelines.query.view.scores.exposition import METRICS
from pipelines.query.view.scores.labels import labels

HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
"""The headers of a request, beside those that say who asks."""

(STALE,) = struct.unpack("<d", (0x7FF0000000000002).to_bytes(8, "little"))
"""The stale marker."""

_MOST = 2_000
"""Samples of one request, as many as Prometheus sends."""
_SNAPPY = pa.Codec("snappy")

Told = tuple[str, str, str]
"""A series for Prometheus: name of the metric, machine and metric."""


class Encoded(NamedTuple):
    """A request.

    Attributes:
        body: Its body, compressed.
        samples: The number of samples in it.
    """

    body: bytes
    samples: int


def values(rows: pl.DataFrame) -> dict[Told, float]:
    """The value of each series for Prometheus that has one.

    Args:
        rows: As in `Scores`.
    """
    series = rows.select("entity", "metric").rows()
    return {
        (name, *each): value
        for name, column, _ in METRICS
        for each, value in zip(series, rows[column].to_list(), strict=True)
        if value is not None
    }


def requests(told: dict[Told, float], version: str, end: int) -> Iterator[Encoded]:
    """The requests with one sample of each of some series.

    Args:
        told: The value of each.
        version: The version of the chain.
        end: The time of the samples, epoch milliseconds.
    """
    whole = list(told.items())
    for start in range(0, len(whole), _MOST):
        request, some = WriteRequest(), whole[start : start + _MOST]
        for series, value in some:
            added = request.timeseries.add(labels=_labels(series, version))
            added.samples.add(value=value, timestamp=end)
        yield Encoded(_SNAPPY.compress(request.SerializeToString(), asbytes=True), len(some))


@lru_cache(1 << 18)
def _labels(series: Told, version: str) -> tuple[bytes, ...]:
    """The labels of a series as messages: they are the same in each request, so they are written once."""
    name, entity, metric = series
    pairs = (("__name__", name), *labels(entity, metric, version))
    return tuple(Label(name=key, value=value).SerializeToString() for key, value in pairs)
