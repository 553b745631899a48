"""`newnormal tail`: any topic as rows, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import orjson
import typer
from confluent_kafka import Consumer, TopicPartition

from engine import columnar
from engine.deadletters import payload_text
from engine.errors import NewnormalError
from engine.time import iso
from pipelines.cli.options import Kafka, Namespace, StateDir, overrides
from pipelines.settings import load
from pipelines.sql.tables import COLUMNAR


def tail(
    topic: Annotated[str, typer.Argument(help="e.g. telemetry, features, novelties, deadletter")],
    limit: Annotated[int, typer.Option(help="Records to show; 0: until Ctrl-C.")] = 20,
    beginning: Annotated[bool, typer.Option("--from-beginning", help="From the oldest record on.")] = False,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Show a topic's records, one JSON line each; columnar batches are unpacked."""
    from deploy.embedded.services import embedded

    settings = load(**overrides(kafka, None, state_dir, namespace))
    with embedded(settings, elasticsearch=False) as servers:
        for shown, line in enumerate(_records(servers.bootstrap, settings.topic(topic), topic, beginning), 1):
            typer.echo(line)
            if shown == limit:
                return


def _records(bootstrap: str, topic: str, kind: str, beginning: bool) -> Iterator[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "newnormal.tail", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    if not partitions:
        raise NewnormalError("TOPIC_UNKNOWN", f"there is no topic {topic}", bootstrap, "an existing topic")
    starts = []
    for partition in partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)
        starts.append(TopicPartition(topic, partition, low if beginning else max(low, high - 5)))
    consumer.assign(starts)
    try:
        while True:
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                yield from _lines(message.value() or b"", kind)
    finally:
        consumer.close()


def _lines(value: bytes, kind: str) -> Iterator[str]:
    record = COLUMNAR.get(kind)
    if record is None:
        yield payload_text(value) if len(value) < 1024 else value.decode("utf-8", "backslashreplace")
        return
    try:
        rows, _ = columnar.decode(value, record.arrow_schema())
    except NewnormalError as error:
        yield str(error)
        return
    for row in rows.to_pylist():
        yield orjson.dumps({k: _readable(k, v) for k, v in row.items() if v is not None}).decode()


def _readable(name: str, value: Any) -> Any:
    return iso(value) if name == "time" or name.startswith("window_") else value
