"""News of made-up sites, and the incidents job run over them without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
import polars as pl
import pyarrow as pa

from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.runtime.intake import KAFKA
from engine.runtime.messages import Message
from engine.runtime.shard import to_table
from engine.testing.driven import Driven
from pipelines.contracts import topics
from pipelines.contracts.records import (
    Acknowledgement,
    Change,
    Incident,
    InferredPlacement,
    News,
    Placement,
    Rule,
    Silence,
)
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.incidents.job import grouper
from pipelines.jobs.incidents.topology import Topology
from pipelines.jobs.incidents.verdicts import ROWS

SETTINGS = load()
STEP, MINUTE = 10_000, 60_000
T0 = 1_767_571_200_000
_NULLABLE = (
    *("template", "example", "level", "since", "actual", "typical", "lower", "upper", "values", "clock"),
    *("full_earliest", "full_latest"),
)


def news(entity: str, metric: str, start: int, kind: str = "anomaly", **more: Any) -> dict[str, Any]:
    """A verdict on the window that begins ``start`` milliseconds after `T0`."""
    row = {"entity": entity, "metric": metric, "window_start": T0 + start, "window_end": T0 + start + STEP}
    made = row | {
        "kind": kind,
        "record_score": 90.0,
        "since": T0 + start,
        "incident_state": "open",
        "template": None,
        "example": None,
        "level": None,
        "metric_kind": "gauge",
        "actual": None,
        "typical": None,
        "lower": None,
        "upper": None,
        "values": None,
        "clock": float(STEP),
        "full_earliest": None,
        "full_latest": None,
    }
    return made | {"revision": 0} | more


def episode(entity: str, metric: str, start: int, end: int, score: float = 90.0) -> list[dict[str, Any]]:
    """A series that is novel in the first window, and whose episode ends ``end`` milliseconds after `T0`."""
    last = {"since": T0 + start, "record_score": 5.0, "incident_state": "closed"}
    first = news(entity, metric, start, record_score=score)
    return [first, news(entity, metric, end - STEP, "recovered", **last)]


def outage(entities: Iterable[str], start: int, end: int, metrics: int = 20) -> list[dict[str, Any]]:
    """Some machines of which all metrics stop at once."""
    series = [(entity, f"metric-{n}") for entity in entities for n in range(metrics)]
    rows = [row for entity, metric in series for row in episode(entity, metric, start, end)]
    return [row | {"kind": "absence"} if row["kind"] == "anomaly" else row for row in rows]


def calls(graph: Mapping[str, Iterable[str]]) -> Topology:
    """A topology of services, each with those that it calls."""
    return Topology({name: Placement(entity=name, depends_on=list(called), time=T0) for name, called in graph.items()})


def placed(parents: Mapping[str, str], moves: Iterable[Placement] = ()) -> Topology:
    """A topology of machines that have always been where they are, but for those that moved."""
    known = {name: Placement(entity=name, parent=parent, time=T0) for name, parent in parents.items()}
    return Topology(known | {move.entity: move for move in moves})


class Feed:
    """Runs the incidents job over micro-batches of news and messages of operators."""

    def __init__(self, shards: int = 1, settings: Settings = SETTINGS) -> None:
        self.run, self.offset = Driven(grouper(settings), shards), 0
        self.held: list[tuple[bytes, str, int, int, int]] | None = None
        said = (topics.TOPOLOGY, topics.ACKNOWLEDGEMENTS, topics.SILENCES, topics.RULES, topics.CHANGES)
        places = [(name, p) for name in said for p in range(SETTINGS.kafka.partitions)]
        self._take([self._row(b"\0heartbeat", *place) for place in places])

    def _row(self, value: bytes, topic: str, partition: int) -> tuple[bytes, str, int, int, int]:
        self.offset += 1
        return value, topic, partition, self.offset, 2**50

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What is sent within the block is one micro-batch."""
        self.held = []
        yield
        rows, self.held = self.held, None
        self._take(rows)

    def _take(self, rows: Sequence[tuple[bytes, str, int, int, int]]) -> None:
        if self.held is not None:
            self.held += rows
            return
        table = [dict(zip(KAFKA.names, row, strict=True)) for row in rows]
        self.run.kafka([pa.Table.from_pylist(table, KAFKA)])

    def place(
        self, entity: str, parent: str | None, moved_from: str | None = None, at: int = 0, calls: Sequence[str] = ()
    ) -> None:
        """An operator says on which machine another runs, and what it calls, from ``at`` ms after `T0` on."""
        made = Placement(entity=entity, parent=parent, depends_on=list(calls), moved_from=moved_from, time=T0 + at)
        self._take([self._row(made.to_json(), topics.TOPOLOGY, 0)])

    def infer(self, entity: str, parent: str | None = None, at: int = 0, **more: Any) -> None:
        """Telemetry tells the place of a machine, ``at`` milliseconds after `T0`."""
        made = InferredPlacement(entity=entity, parent=parent, time=T0 + at, **more)
        self._take([self._row(made.to_json(), topics.PLACES, 0)])

    def acknowledge(self, incident: str, at: int, **more: Any) -> None:
        """An operator looks after an incident, ``at`` milliseconds after `T0`."""
        given = Acknowledgement(incident=incident, time=T0 + at, by="ann", **more)
        self._take([self._row(given.to_json(), topics.ACKNOWLEDGEMENTS, 0)])

    def say(self, *said: Silence | Rule | Change) -> None:
        """Silences, rules and changes, each with its own time."""
        named: dict[type, str] = {Silence: topics.SILENCES, Rule: topics.RULES, Change: topics.CHANGES}
        self._take([self._row(each.to_json(), named[type(each)], 0) for each in said])

    def send(self, rows: Sequence[dict[str, Any]], until: int, topic: str = topics.NEWS) -> list[dict[str, Any]]:
        """News in the order given, spread over the partitions, and the watermark after them; returns what was written.

        Args:
            rows: The news.
            until: The watermark after them, milliseconds after `T0`.
            topic: The topic.
        """
        count, before = SETTINGS.kafka.partitions, len(self.run.rows)
        places = slots(pl.Series([row["entity"] for row in rows], dtype=pl.String), count)
        parts = [[row for row, place in zip(rows, places, strict=True) if place == p] for p in range(count)]
        schema = pl.DataFrame([news("a", "m", 0)]).schema | {name: ROWS[name] for name in _NULLABLE}
        tables = [to_table(pl.DataFrame(part, schema), News) for part in parts]
        self._take([self._row(columnar.encode(t, T0 + until), topic, p) for p, t in enumerate(tables)])
        return self.run.rows[before:]

    def messages(self, messages: Iterable[Message]) -> None:
        """One micro-batch of messages that detectors have written."""
        self._take([self._row(each.value, each.topic, each.partition) for each in messages])

    @property
    def incidents(self) -> dict[str, Incident]:
        """The last revision of each incident, by id."""
        last: dict[str, dict[str, Any]] = {}
        for row in self.run.rows:
            name = row.get("event.id") or row["id"]
            if name not in last or row["revision"] > last[name]["revision"]:
                last[name] = row
        return {name: parsed(row) for name, row in last.items()}

    @property
    def standing(self) -> list[Incident]:
        """The incidents that are not parts of others, in the order in which they were reported."""
        left = [each for each in self.incidents.values() if each.status != "merged"]
        return sorted(left, key=lambda each: (each.opened, each.id))


def parsed(row: dict[str, Any]) -> Incident:
    """A row of the output as a record."""
    return Incident.model_validate(orjson.loads(orjson.dumps(row)))
