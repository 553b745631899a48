"""How fast documents are stored: by a real Elasticsearch alone, by the sink alone, and by its job, which reads Kafka.

``newnormal bench sink`` writes verdicts on ordinary windows to `novelties`, and prints a table. All figures are of a
server that is warm: its JVM compiles until it has stored 1.5 million documents, of which the first cost it seven times
what the later ones cost. The first micro-batch of each does not count either. Elasticsearch alone gets requests that
were made before, as many at a time as the sink sends. The time of the job is that between the files in which Spark
notes its first and its last micro-batch, so the start of Spark does not count.
"""

from __future__ import annotations

import math
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer
from rich.table import Table

from deploy.embedded.services import embedded
from engine.kafka.admin import ensure_topics
from engine.spark.query import Runtime
from pipelines.contracts import topics
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.contracts.records import Novelty
from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.contracts.settings import load
from pipelines.jobs.sink.bulk import Limits
from pipelines.jobs.sink.document import SinkDocument
from pipelines.jobs.sink.sink import Sink, SinkConfig
from tests.benchmarks.queries import say
from tests.benchmarks.replay import command, completed, jobs_on

_BATCH = Runtime.max_documents
_WARM = 1_500_000
"""Documents after which an Elasticsearch works as fast as it ever will."""

_BAR = 25_000
"""Documents a second that the job must reach on two quiet cores."""


def verdicts(count: int) -> list[bytes]:
    """Ordinary verdicts on a thousand series, in the order of their windows, with all digits that a detector writes."""
    begin, found = int(time.time() * 1000) // 10_000 * 10_000 - 3_600_000, []
    channels = ("point", "window", "record", "change", "frozen", "absence")
    for number in range(count):
        start, share = begin + number // 1_000 * 10_000, number % 977 / 977
        tree = {
            "host.name": f"host-{number % 100:03}", "metric": f"system.load.{number // 100 % 10}",
            "metric_kind": "gauge", "window_start": start, "@timestamp": start + 10_000, "kind": "normal",
            "record_score": 3 * share, "probability": 1 - share / 3, "actual": 100 + share, "typical": 100 + share / 7,
            "lower": 97 + share / 7, "upper": 103 + share / 7,
            "evidence": {name: share / place for place, name in enumerate(channels, 3)},
            "influencers": {}, "rules": [], "revision": 0,
        }  # fmt: skip
        found.append(orjson.dumps(tree))
    return found


def requests(values: list[bytes], index: str, documents: int) -> list[bytes]:
    """Bulk requests of some verdicts, as the sink sends them."""
    lines = []
    for number, value in enumerate(values):
        place = {"_index": index, "_id": f"document {number}", "version": 1, "version_type": "external_gte"}
        lines += [orjson.dumps({"index": place}), value]
    size = 2 * documents
    return [b"\n".join(lines[first : first + size]) + b"\n" for first in range(0, len(lines), size)]


def run(count: int) -> dict[str, Any]:
    """Measures all three; ``count`` is the number of documents of each, more than two micro-batches of them."""
    began, values = 0.0, verdicts(count)
    with tempfile.TemporaryDirectory(prefix="newnormal-sink-") as folder:
        asked = load(state_dir=Path(folder) / "servers", **{"console.port": 0})
        with embedded(asked) as servers:
            found = servers.settings(asked)
            url, bootstrap = found.elasticsearch.url or "", found.kafka.bootstrap or ""
            limits = Limits()
            with (
                elasticsearch_client(url, request_timeout=60) as client,
                ThreadPoolExecutor(limits.connections) as lanes,
            ):
                for number in range(math.ceil(_WARM / count) + 1):
                    client.indices.create(index=f"alone-{number}", mappings=mapping(Novelty))
                    bodies = requests(values, f"alone-{number}", limits.documents)
                    began = time.perf_counter()
                    list(lanes.map(lambda body: client.bulk(operations=body), bodies))
                server = count / (time.perf_counter() - began)
            say(f"Elasticsearch alone: {server:,.0f} documents/s")

            sink = Sink(SinkConfig(url=url, index="sink", alias="sink"))
            documents = [SinkDocument(value) for value in values]
            for first in range(0, count, _BATCH):
                sink.write(documents[first : first + _BATCH])
                began = time.perf_counter() if first == 0 else began
            alone = (count - _BATCH) / (time.perf_counter() - began)
            sink.close()
            say(f"the sink alone: {alone:,.0f} documents/s")

            settings = load(state_dir=Path(folder) / "jobs", **{"kafka.bootstrap": bootstrap})
            topic = settings.topic(topics.NOVELTIES)
            ensure_topics(bootstrap, {topic: topics.config(topics.NOVELTIES)}, settings.kafka.partitions)
            producer = Producer(
                {"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 10_000_000, "log_level": 0}
            )
            for number, value in enumerate(values):
                producer.produce(topic, value, partition=number % settings.kafka.partitions)
            producer.flush()
            command(jobs_on(found, settings.state), "run", "sink", "--until", "now")
            (began, first), *_, (ended, last) = completed(settings.folder("checkpoints") / "sink", topic)
    job, size = (last - first) / (ended - began), round(sum(map(len, values)) / count)
    table = Table("what stores the documents", "documents/s", "bar", title=f"{count:,} verdicts of {size} bytes")
    table.add_row("Elasticsearch alone, from requests made before", f"{server:,.0f}", "")
    table.add_row("the sink alone", f"{alone:,.0f}", "")
    table.add_row("its job, from Kafka through Spark", f"{job:,.0f}", f"{_BAR:,}")
    say(table)
    return {
        "documents": count,
        "bytes": size,
        "elasticsearch_alone_per_second": round(server),
        "sink_alone_per_second": round(alone),
        "job_per_second": round(job),
        "bar_per_second": _BAR,
    }
