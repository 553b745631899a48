"""The samples of a comparison as Avro, and the statistics of their windows, computed without either program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from tests.benchmarks.load import Load

WINDOW_MS = 10_000
SERIES = ["entity", "metric", "window_start", "window_end"]
STATISTICS = ["count", "sum", "mean", "std", "min", "max"]


def avro(samples: pl.DataFrame) -> Iterator[bytes]:
    """Records as Avro encodes them: a long, two strings, a double.

    >>> row = pl.DataFrame({"time": [64], "entity": ["a"], "metric": ["bc"], "value": [1.0]})
    >>> next(avro(row)).hex(" ")
    '80 01 02 61 04 62 63 00 00 00 00 00 00 f0 3f'
    """
    texts: dict[str, bytes] = {}

    def text(value: str) -> bytes:
        if value not in texts:
            letters = value.encode()
            texts[value] = _long(len(letters)) + letters
        return texts[value]

    columns = (samples[name].to_list() for name in ("time", "entity", "metric"))
    numbers = samples["value"].to_numpy().astype("<f8").tobytes()
    for row, (time, entity, metric) in enumerate(zip(*columns, strict=True)):
        yield _long(time) + text(entity) + text(metric) + numbers[8 * row : 8 * row + 8]


def _long(value: int) -> bytes:
    """Avro's whole number that is not negative: seven bits a byte, the lowest first, of twice the number."""
    left, written = 2 * value, bytearray()
    while left > 127:
        written.append(left & 127 | 128)
        left >>= 7
    written.append(left)
    return bytes(written)


def expected(load: Load) -> pl.DataFrame:
    """The statistics of all windows that the samples fill, by NumPy."""
    main = [chunk for chunk in load.chunks() if chunk["entity"][0].startswith("host-")]
    numbers = {"entity": "host-", "metric": "metric."}
    names = pl.concat(main).select(pl.col(name).str.strip_prefix(text).cast(pl.Int64) for name, text in numbers.items())
    times = np.concatenate([chunk["time"].to_numpy() for chunk in main])
    values = np.concatenate([chunk["value"].to_numpy() for chunk in main])
    key = names["entity"].to_numpy() * 1_000 + names["metric"].to_numpy()
    window = times // WINDOW_MS
    order = np.lexsort((key, window))
    key, window, values = key[order], window[order], values[order]
    begins = np.flatnonzero(np.append(True, (np.diff(key) != 0) | (np.diff(window) != 0)))
    count = np.diff(np.append(begins, len(values)))
    sums = np.add.reduceat(values, begins)
    away = values - np.repeat(sums / count, count)
    start = window[begins] * WINDOW_MS
    return pl.DataFrame(
        {
            "entity": [f"host-{number // 1_000}" for number in key[begins].tolist()],
            "metric": [f"metric.{number % 1_000}" for number in key[begins].tolist()],
            "window_start": start,
            "window_end": start + WINDOW_MS,
            "count": count,
            "sum": sums,
            "mean": sums / count,
            "std": np.sqrt(np.add.reduceat(away**2, begins) / np.maximum(count - 1, 1)),
            "min": np.minimum.reduceat(values, begins),
            "max": np.maximum.reduceat(values, begins),
        }
    )
