"""`newnormal sql`: queries topics as tables: once, continuously, or as a standing job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import typer
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, TopicPartition

from engine.kafka import content as kafka_content
from engine.printing import visible
from engine.spec.decoder import Messages
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from engine.spec.source import Source
from engine.spec.time_bounds import TimeBounds
from engine.watermarks import BoundedOutOfOrderness
from pipelines.cli import rows
from pipelines.cli.options import Overrides, with_kafka
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.query import tables
from pipelines.query.ad_hoc import LiveQuery, LiveTable, evaluate
from pipelines.query.windowed_sql import Query, parse

_STATES = "view.states"
"""The table of the last states that the state view has."""


@with_kafka
def sql(
    overrides: Overrides,
    query: Annotated[str, typer.Argument(help="SELECT ... over topics, e.g. telemetry, features, novelties")],
    live: Annotated[
        bool, typer.Option("--live", help="Run on, and show a result for each window that the watermark passes.")
    ] = False,
    beginning: Annotated[
        bool, typer.Option("--from-beginning", help="With --live: start from the oldest record.")
    ] = False,
    windows: Annotated[int, typer.Option(help="With --live: stop after this many windows; 0: run until Ctrl-C.")] = 0,
    into: Annotated[
        str | None,
        typer.Option(help="Run the query as a standing job on Spark that writes to this topic, until Ctrl-C."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object per row instead of a table.")] = False,
    view: Annotated[
        list[str] | None,
        typer.Option(help="URL of the state view, once for each part, for view.states. Default: view.host, view.port."),
    ] = None,
) -> None:
    """Query topics as tables, with event-time windows.

    Without --live, the query reads the records that the topics hold now. Times are integers, UTC epoch milliseconds;
    topic names with dots may be quoted. FROM tumble(telemetry, time, '10s') or hop(telemetry, time, '10s', '1m') adds
    window_start and window_end to each row; GROUP BY tumble(time, '10s') groups by the start of the window. The table
    view.states holds the last state of each series, from a running `newnormal view`.

    With --into TOPIC, a query over one topic in windows (tumble, hop or session(telemetry, time, '30s')), grouped by
    columns, runs as a job on Spark: exactly once, with a checkpoint and the topics TOPIC.late and TOPIC.deadletter.
    """
    from deploy.embedded.services import running  # Kafka: only once the query is run

    if into:
        _stand(query, into, load(**overrides))
        return
    parsed = parse(query)
    settings = running(load(**overrides), elasticsearch=False)
    reader = tables.consumer(settings.kafka.bootstrap or "")
    try:
        names = parsed.topics(tables.topic_names(reader, settings.namespace))
        if not live:
            found = dict(_bounded(settings, names))
            if _STATES in parsed.words:
                found[_STATES] = _states(settings, view)
            _show(evaluate(parsed, found), as_json)
            return
        for number, (end, result) in enumerate(_live(reader, settings, parsed, names, beginning), 1):
            _show(result, as_json, f"window to {iso(end)}")
            if number == windows:
                return
    finally:
        reader.close()


def _stand(query: str, into: str, settings: Settings) -> None:
    """Runs a query as a standing job, until Ctrl-C."""
    from deploy.embedded.services import running  # Spark and Kafka: only once the query is run
    from pipelines.query.standing import standing
    from pipelines.runtime.driver import Driver
    from pipelines.runtime.own_jobs import OwnJobs
    from pipelines.runtime.watch import watching

    program = OwnJobs([standing(query, into, settings)])
    driver = Driver(running(settings, elasticsearch=False), program=program)
    with watching(driver) as watch:
        watch.until(lambda: False)


def _bounded(settings: Settings, names: list[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    for name in names:
        frame, refused = tables.frame(name, kafka_content.values(settings.kafka.bootstrap or "", settings.topic(name)))
        if refused:
            typer.echo(visible(f"{name}: {refused} messages could not be read and are left out"), err=True)
        yield name, frame


def _states(settings: Settings, urls: list[str] | None) -> pl.DataFrame:
    from pipelines.query.view.client import ViewClient  # only for queries that ask the view

    found = [orjson.dumps(state) for state in ViewClient.of(settings.view, urls).states()]
    return tables.frame(topics.STATE, found)[0]


def _live(
    reader: Consumer, settings: Settings, query: Query, names: list[str], beginning: bool
) -> Iterator[tuple[int, pl.DataFrame]]:
    by_name = {
        name: _table(settings, name, tables.partitions_with_messages(reader, settings.topic(name))) for name in names
    }
    live = LiveQuery(query, by_name, beginning)
    start = OFFSET_BEGINNING if beginning else OFFSET_END
    by_topic = {settings.topic(name): name for name in live.tables}
    reader.assign([TopicPartition(topic, p, start) for topic in by_topic for p in tables.partitions(reader, topic)])
    while True:
        some = [message for message in reader.consume(10_000, 0.5) if not message.error()]
        place = sorted(some, key=lambda m: (m.topic(), m.partition(), m.offset()))
        for (topic, partition), group in groupby(place, lambda m: (m.topic(), m.partition())):
            run = list(group)
            values = pa.array([m.value() or b"" for m in run], pa.binary())
            offsets, arrived = (
                np.array(c, np.int64) for c in zip(*((m.offset(), m.timestamp()[1]) for m in run), strict=True)
            )
            live.take(by_topic[topic], Messages(topic, partition, values, offsets, arrived))
        yield from live.results()


def _table(settings: Settings, name: str, partitions: list[int]) -> LiveTable:
    record, decoder = tables.record_of(name), tables.decoder(name)
    if record is None or decoder is None:
        typed = ", ".join([*tables.COLUMNAR, *tables.JSON])
        raise NewnormalError(
            "SQL_LIVE_TOPIC", f"the topic {name} has no record type", "query", typed, "nothing was read"
        )
    time = next(column for column in ("window_end", "time") if column in record.model_fields)
    topic, marks = settings.topic(name), settings.watermark
    strategy = BoundedOutOfOrderness(marks.out_of_orderness, marks.idle_after, tuple((topic, p) for p in partitions))
    return LiveTable(Source({topic: decoder}, record, time, strategy, TimeBounds(marks.max_ahead, marks.earliest)))


def _show(result: pl.DataFrame, as_json: bool, title: str = "") -> None:
    if not as_json:
        rows.frame(result, title)
        return
    for row in result.to_dicts():
        typer.echo(rows.line(row))
