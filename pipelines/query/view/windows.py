"""The last windows of each series: a ring of windows by series, which bounds what is stored.

A window's place in the ring follows from its end: a later revision replaces it, and storing one needs no reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from engine.spec.duration import duration_ms
from pipelines.contracts.settings import Settings
from pipelines.query.view.database import Database
from pipelines.query.view.keys import VERDICT, WINDOW, names, slot

_WHOLE = ("window_start", "window_end", "count", "revision")
_NUMBERS = ("mean", "std", "min", "max", "last", "p50", "p95", "p99", "rate")
_LAYOUT = np.dtype([*((name, "<i8") for name in _WHOLE), *((name, "<f8") for name in _NUMBERS)])
_OF_VERDICT = (
    *("window_start", "@timestamp", "kind", "record_score", "actual", "typical", "lower", "upper", "since"),
    *("incident.state", "revision"),
)
"""What is stored of a verdict, by its JSON names."""


class Ring:
    """The places of windows.

    Args:
        settings: The settings of windows.

    Attributes:
        every: Time between the ends of two windows of a series, milliseconds.
        places: Number of places for each series. A revision of the oldest window that may still change must not replace
            a newer window, so there are more places than windows to show if the allowed lateness is long.
    """

    def __init__(self, settings: Settings) -> None:
        window = settings.window
        self.every = duration_ms(window.every or window.size)
        late = -(-(duration_ms(window.allowed_lateness) + duration_ms(window.size)) // self.every)
        self.places = max(settings.view.windows, late + 1)

    def place(self, end: int) -> bytes:
        """The place of the window that ends at an instant, epoch milliseconds."""
        return slot(end // self.every % self.places)

    def statistics(self, features: pa.Table) -> Iterator[tuple[bytes, bytes]]:
        """The entries for records of `Features`."""
        table = features.unify_dictionaries()
        rows = np.empty(table.num_rows, _LAYOUT)
        for name in (*_WHOLE, *_NUMBERS):
            rows[name] = table.column(name).to_numpy()
        numbers = (rows["window_end"] // self.every % self.places).tolist()
        keys = zip(*(_encoded(table, name) for name in ("entity", "metric")), numbers, strict=True)
        raw, size = rows.tobytes(), _LAYOUT.itemsize
        for row, (entity, metric, number) in enumerate(keys):
            yield WINDOW + entity + metric + slot(number), raw[row * size : (row + 1) * size]

    def verdict(self, message: bytes) -> tuple[bytes, bytes]:
        """The entry for a message of `novelties`.

        Raises:
            ValueError: If it is none.
        """
        whole = orjson.loads(message)
        key = VERDICT + names(whole["host.name"], whole["metric"]) + self.place(whole["@timestamp"])
        return key, orjson.dumps({name: whole[name] for name in _OF_VERDICT if name in whole})


def last_windows(database: Database, entity: str, metric: str, most: int) -> list[dict[str, Any]]:
    """The last windows of a series, the oldest first, with the verdicts on them where these are known."""
    series = names(entity, metric)
    found: dict[int, dict[str, Any]] = {}
    for _, value in database.scan(WINDOW + series):
        row = np.frombuffer(value, _LAYOUT)[0]
        window = {name: row[name].item() for name in _LAYOUT.names or ()}
        window = {name: number for name, number in window.items() if number == number}  # noqa: PLR0124  without NaN
        found[window["window_end"]] = window
    for _, value in database.scan(VERDICT + series):
        verdict = orjson.loads(value)
        end = verdict.pop("@timestamp")
        verdict.pop("revision", None)
        found[end] = {"window_end": end, **found.get(end, {}), **verdict}
    return [found[end] for end in sorted(found)[-most:]] if most else []


def _encoded(table: pa.Table, name: str) -> list[bytes]:
    """One name of each row as a part of a key; each distinct name is encoded once."""
    column = table.column(name).combine_chunks()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    known = [names(each) for each in column.dictionary.to_pylist()]
    return [known[index] for index in column.indices.to_pylist()]
