"""The last windows of each series: a ring of windows by series, which bounds what is stored.

A window's place in the ring follows from its end, so storing one needs no reading. Of verdicts, which may be written
again long after, the newest in a place counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

import numpy as np
import orjson
import pyarrow as pa

from pipelines.contracts.records.novelty import QUIET_KINDS
from pipelines.contracts.records.telemetry import MetricKind
from pipelines.contracts.settings import Settings
from pipelines.query.view.database import Database
from pipelines.query.view.keys import BELIEF, STATE, VERDICT, WINDOW, names, slot

_WHOLE = ("window_start", "window_end", "count", "revision")
_NUMBERS = ("mean", "std", "min", "max", "last", "p50", "p95", "p99", "rate")
_METRIC_KINDS: tuple[str, ...] = get_args(MetricKind)
_LAYOUT = np.dtype([*((name, "<i8") for name in (*_WHOLE, "kind")), *((name, "<f8") for name in _NUMBERS)])
_OF_VERDICT = (
    *("window_start", "@timestamp", "kind", "record_score", "state_score", "actual", "typical", "lower", "upper"),
    *("since", "incident.state", "revision"),
)
"""What is stored of a verdict, by its JSON names."""
_OF_BELIEF = ("@timestamp", "kind", "record_score", "typical", "lower", "upper", "since", "incident.state")
"""What is stored of a belief, by its JSON names."""


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
        self.every = window.step_ms
        late = -(-window.open_for_ms // self.every)
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
        rows["kind"] = _kinds(table)
        numbers = (rows["window_end"] // self.every % self.places).tolist()
        keys = zip(*(_encoded(table, name) for name in ("entity", "metric")), numbers, strict=True)
        raw, size = rows.tobytes(), _LAYOUT.itemsize
        for row, (entity, metric, number) in enumerate(keys):
            yield WINDOW + entity + metric + slot(number), raw[row * size : (row + 1) * size]

    def verdict(self, message: bytes) -> tuple[bytes, bytes]:
        """The entry for a message of `novelties`; see `newest` for which of several in one place counts.

        Raises:
            ValueError: If it is none.
        """
        return self._entry(VERDICT, orjson.loads(message), _OF_VERDICT)

    def belief(self, state: dict[str, Any]) -> tuple[bytes, bytes]:
        """The entry for a belief, a `SeriesState` by its JSON names, among the windows of its series."""
        return self._entry(BELIEF, state, _OF_BELIEF)

    def _entry(self, prefix: bytes, whole: dict[str, Any], kept: tuple[str, ...]) -> tuple[bytes, bytes]:
        key = prefix + names(whole["host.name"], whole["metric"]) + self.place(whole["@timestamp"])
        return key, orjson.dumps({name: whole[name] for name in kept if name in whole})


def newest(pairs: Iterable[tuple[bytes, bytes]], database: Database) -> dict[bytes, bytes]:
    """Of several verdicts in one place of the ring the one on the newest window, of that its highest revision.

    A verdict that is written again, such as a dead letter that was sent again, replaces neither.

    Args:
        pairs: Entries for verdicts, in the order in which they were read.
        database: Where earlier ones are.
    """
    best: dict[bytes, tuple[tuple[int, int], bytes]] = {}
    entries = list(pairs)
    keys = list(dict.fromkeys(key for key, _ in entries))
    stored = zip(keys, database.get_many(keys), strict=True)
    for key, value in [*((key, value) for key, value in stored if value), *entries]:
        whole = orjson.loads(value)
        order = whole["@timestamp"], whole.get("revision", 0)
        if key not in best or order >= best[key][0]:
            best[key] = order, value
    return {key: value for key, (_, value) in best.items()}


def last_windows(database: Database, entity: str, metric: str, most: int) -> list[dict[str, Any]]:
    """The last windows of a series, the oldest first, with the verdicts on them where these are known.

    A window without a verdict was quiet. It has the typical value and the band that were last said before its end: a
    belief is said again when it has moved by a quarter of the band's width.
    """
    series = names(entity, metric)
    windows: dict[int, dict[str, Any]] = {}
    for row in np.frombuffer(b"".join(value for _, value in database.scan(WINDOW + series)), _LAYOUT):
        window = {name: row[name].item() for name in _LAYOUT.names or ()}
        kind = _METRIC_KINDS[window.pop("kind")]
        window = {name: number for name, number in window.items() if number == number}  # noqa: PLR0124  without NaN
        windows[window["window_end"]] = window | {"metric_kind": kind}
    with_verdict = set()
    for _, value in database.scan(VERDICT + series):
        verdict = orjson.loads(value)
        end = verdict.pop("@timestamp")
        verdict.pop("revision", None)
        windows[end] = {"window_end": end, **windows.get(end, {}), **verdict}
        with_verdict.add(end)
    last = [windows[end] for end in sorted(windows)[-most:]] if most else []
    beliefs = _beliefs(database, series)
    belief: dict[str, Any] = {}
    for window in last:
        while beliefs and beliefs[-1]["@timestamp"] <= window["window_end"]:
            belief = beliefs.pop()
        if window["window_end"] not in with_verdict:
            window.update(_believed(belief))
    return last


def _beliefs(database: Database, series: bytes) -> list[dict[str, Any]]:
    """What was said of a series, the newest first: the last state may be older than the ring of its windows."""
    said = {each["@timestamp"]: each for _, value in database.scan(BELIEF + series) if (each := orjson.loads(value))}
    if state := database.get(STATE + series):
        newest = orjson.loads(state)
        said.setdefault(newest["@timestamp"], newest)
    return [said[end] for end in sorted(said, reverse=True)]


def _believed(verdict: dict[str, Any]) -> dict[str, Any]:
    """What a belief says of a quiet window after it."""
    band = {name: verdict[name] for name in ("typical", "lower", "upper") if verdict.get(name) is not None}
    return band | ({"kind": verdict["kind"]} if verdict.get("kind") in QUIET_KINDS else {})


def _kinds(table: pa.Table) -> Any:
    """The place of the kind of each row's metric in `MetricKind`."""
    column = table.column("kind").combine_chunks()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    places = np.array([_METRIC_KINDS.index(each) for each in column.dictionary.to_pylist()] or [0], np.int64)
    return places[column.indices.fill_null(0).to_numpy(zero_copy_only=False)]


def _encoded(table: pa.Table, name: str) -> list[bytes]:
    """One name of each row as a part of a key; each distinct name is encoded once."""
    column = table.column(name).combine_chunks()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    known = [names(each) for each in column.dictionary.to_pylist()]
    return [known[index] for index in column.indices.to_pylist()]
