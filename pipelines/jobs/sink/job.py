"""The sink as a job: writes verdicts, incidents and changes to Elasticsearch, rejected documents to `deadletter`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from engine.formats.dead_letters import dead_letter
from engine.runtime.messages import Outgoing
from engine.spark.query import Runtime, writer_of
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.records import Change, Incident
from pipelines.contracts.settings import Settings
from pipelines.jobs.operator_messages import accepted
from pipelines.jobs.sink.backoff import ForbiddenError
from pipelines.jobs.sink.document import SinkDocument, SinkOutcome
from pipelines.jobs.sink.sink import Sink, SinkConfig

log = structlog.get_logger()


@dataclass(frozen=True)
class SinkReport:
    """The report of one micro-batch: number of messages read, outcome, duration in seconds, and what is not stored."""

    records_in: int
    outcome: SinkOutcome
    seconds: float
    missing: str = ""


class SinkJob:
    """Writes micro-batches to Elasticsearch. Writing one again is harmless, because of `_id` and version.

    Args:
        settings: The settings, with the servers' addresses filled in.
        runtime: How the queries run.
        listener: Called with the report of each micro-batch.
    """

    def __init__(self, settings: Settings, runtime: Runtime, listener: Callable[[SinkReport], None]) -> None:
        self.settings, self.runtime, self.listener = settings, runtime, listener
        self.stopping, self.told = threading.Event(), False
        url, incidents = settings.elasticsearch.url or "", settings.reads(topics.INCIDENTS)
        self.changes = settings.reads(topics.CHANGES)
        self.sink = Sink(SinkConfig.of(settings, url), stop=self.stopping)
        self.sinks = {
            incidents: Sink(SinkConfig.of_incidents(settings, url), Incident, self.stopping),
            self.changes: Sink(SinkConfig.of_changes(settings, url), Change, self.stopping),
        }

    def write(self, rows: pa.Table, batch_id: int) -> None:
        """Writes a micro-batch; returns when each document is stored, superseded, or in the dead-letter topic.

        Args:
            rows: The Kafka messages, with columns ``topic``, ``partition``, ``offset``, ``value`` and ``arrived``.
            batch_id: Number of the micro-batch.

        Raises:
            NewnormalError: See `Sink.write`.
        """
        began, rows = time.perf_counter(), self._usable(rows)
        places = zip(rows["value"].to_pylist(), rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True)
        names = rows["topic"].to_pylist()
        documents = [
            SinkDocument(value or b"", f"{topic}/{partition}@{offset}")
            for topic, (value, partition, offset) in zip(names, places, strict=True)
        ]
        few, missing = [], ""
        for topic, sink in self.sinks.items():  # incidents first: they are few, and what operators wait for
            mine = [document for name, document in zip(names, documents, strict=True) if name == topic]
            try:
                sink.open()  # a version can be promoted before it has its first incident
                if mine:
                    few.append(sink.write(mine))
            except ForbiddenError as error:
                if topic != self.changes:
                    raise
                missing = self._without_changes(error)
        others = [document for name, document in zip(names, documents, strict=True) if name not in self.sinks]
        outcome = self.sink.write(others)
        for each in few:
            outcome = outcome.plus(each)
        if outcome.rejected:
            self._dead_letters(rows, documents, outcome, batch_id)
        if documents:
            self.listener(SinkReport(len(documents), outcome, time.perf_counter() - began, missing))

    def _without_changes(self, error: ForbiddenError) -> str:
        """Says that changes are not stored, in the log once; the account may be older than they are."""
        names = f"{self.settings.change_alias}*"
        missing = f"changes are not stored, as the account lacks privileges for {names} (security.md): {error.what}"
        if not self.told:
            log.warning("changes are not stored; verdicts and incidents are", lacking=names, reason=error.what)
        self.told = True
        return missing

    def _usable(self, rows: pa.Table) -> pa.Table:
        """The messages without heartbeats, and without what is no change: the incidents job writes its dead letters."""
        others = pc.not_equal(rows["topic"], self.changes)
        if pc.all(others).as_py():
            return rows
        messages = zip(others.to_pylist(), rows["value"].to_pylist(), strict=True)
        return rows.filter(pa.array([other or _is_change(value) for other, value in messages], pa.bool_()))

    def _dead_letters(self, rows: pa.Table, documents: list[SinkDocument], outcome: SinkOutcome, batch_id: int) -> None:
        at = {document.origin: row for row, document in enumerate(documents)}
        letters = []
        for rejected in outcome.rejected:
            row = at[rejected.document.origin]
            place = {name: rows[name][row].as_py() for name in ("topic", "partition", "offset")}
            time_ = rows["arrived"][row].as_py()
            letters.append(
                dead_letter("sink", rejected.code, rejected.reason, rejected.document.raw, time=time_, **place)
            )
        writer = writer_of("sink", self.runtime)
        topic = self.settings.writes(topics.DEADLETTER)
        writer.write(batch_id, [Outgoing.of(topic, 0, [letter.to_json() for letter in letters])])
        writer.close()

    def problem(self) -> str | None:
        """Why nothing is stored now; ``None`` if all is well. Kafka keeps the verdicts meanwhile."""
        why = next((why for sink in (self.sink, *self.sinks.values()) if (why := sink.problem())), None)
        return f"sink: {why}; Kafka keeps the verdicts meanwhile" if why else None

    def stop(self) -> None:
        """Stops waiting for a server that is down; the next start repeats the present micro-batch."""
        self.stopping.set()

    def close(self) -> None:
        """Closes the connections; to be called when the query has ended."""
        for sink in (self.sink, *self.sinks.values()):
            sink.close()


def _is_change(raw: bytes | None) -> bool:
    try:
        accepted(Change, raw)
    except NewnormalError:
        return False
    return True
