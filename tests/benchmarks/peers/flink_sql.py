"""The comparison's job in Flink SQL: tumbling windows of each series, from Kafka to Kafka, exactly once."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.peers.flink_environment import Flink

FORMATS = {
    "json": ("`@timestamp`", "`host.name`", {"json.ignore-parse-errors": "true"}),
    "avro": ("`time`", "`entity`", {}),
}
"""For each format the names of time and machine in it, and options. Our heartbeats in a JSON topic are no JSON."""


def options(flink: Flink, folder: Path) -> dict[str, str]:
    """Options of Flink: two threads, state on its heap, and reuse of objects, which is its fastest."""
    return {
        "pipeline.jars": ";".join(f"file://{jar}" for jar in flink.jars),
        "parallelism.default": "2",
        "table.local-time-zone": "UTC",
        "pipeline.object-reuse": "true",
        "taskmanager.memory.managed.size": "512m",
        "state.backend.type": "hashmap",
        "execution.checkpointing.interval": "5 s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.dir": f"file://{(folder / 'checkpoints').absolute()}",
        "io.tmp.dirs": str(folder.absolute()),
    }


def statements(bootstrap: str, kind: str, source: str, target: str) -> list[str]:
    """Both tables, and the query.

    Args:
        bootstrap: Address of the broker.
        kind: Format of the samples, of `FORMATS`.
        source: Topic of the samples.
        target: Topic of the results, which are JSON.
    """
    time, machine, more = FORMATS[kind]
    kafka = {"connector": "kafka", "properties.bootstrap.servers": bootstrap}
    reads = kafka | {"topic": source, "scan.startup.mode": "earliest-offset", "format": kind} | more
    reads |= {"properties.isolation.level": "read_committed"}
    writes = kafka | {"topic": target, "format": "json", "sink.delivery-guarantee": "exactly-once"}
    writes |= {"sink.transactional-id-prefix": target, "properties.transaction.timeout.ms": "600000"}
    return [
        f"""CREATE TABLE samples (
  {time} BIGINT NOT NULL, {machine} STRING NOT NULL, metric STRING NOT NULL, `value` DOUBLE NOT NULL,
  happened AS TO_TIMESTAMP_LTZ({time}, 3),
  WATERMARK FOR happened AS happened - INTERVAL '5' SECOND
) WITH ({_given(reads)})""",
        f"""CREATE TABLE results (
  entity STRING, metric STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3),
  `count` BIGINT, `sum` DOUBLE, `mean` DOUBLE, `std` DOUBLE, `min` DOUBLE, `max` DOUBLE
) WITH ({_given(writes)})""",
        f"""INSERT INTO results
SELECT {machine}, metric, window_start, window_end,
  COUNT(*), SUM(`value`), AVG(`value`), STDDEV_SAMP(`value`), MIN(`value`), MAX(`value`)
FROM TUMBLE(TABLE samples, DESCRIPTOR(happened), INTERVAL '10' SECOND)
GROUP BY {machine}, metric, window_start, window_end""",
    ]


def _given(values: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in values.items())
