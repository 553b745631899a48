"""Makes the archive of Spark's classes, with which each later start takes less time: `engine.spark.class_archive`.

``python -m deploy.class_archive`` runs a small job through a Kafka of its own, which needs nearly the same classes as
all other jobs, and lets Spark's JVM write them down. It takes about a minute, once for each environment.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from deploy.artifacts import spark_jars
from deploy.embedded.services import embedded
from deploy.java import java_home
from deploy.progress import saying, silent
from engine import Count, Instant, Quantile, Record, Stream, Tumbling
from engine.kafka.admin import ensure_topics
from engine.kafka.content import values
from engine.locks import locked
from engine.spark import class_archive
from engine.spark.module_path import share_module_path
from engine.spark.run import run
from engine.spark.session import StartingSpark, end
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load

_RUN_SECONDS = 300.0
_WRITE_SECONDS = 300.0
_PARTITIONS = 2


class Sample(Record):
    """What the small job reads."""

    time: Instant
    name: str
    value: float


JOB = (
    Stream.read_json("samples", Sample, time="time", out_of_orderness="1s")
    .key_by("name")
    .window(Tumbling("10s"))
    .aggregate(n=Count(), p99=Quantile("value", 0.99))
    .write("results")
)


def make() -> None:
    """Writes the archive of this environment anew; it appears at once or not at all, and those for other jars go."""
    target = class_archive.place(spark_jars())
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="newnormal-classes-") as folder, locked(target.with_suffix(".lock")):
        state, written = Path(folder), target.with_name(f".{os.getpid()}.jsa")
        try:
            with embedded(load(state_dir=state / "servers"), elasticsearch=False, say=silent) as servers:
                _record(servers.bootstrap, state, written)
            written.rename(target)
            for other in set(target.parent.glob("spark-*.jsa")) - {target}:
                other.unlink(missing_ok=True)
        finally:
            written.unlink(missing_ok=True)


def _record(bootstrap: str, state: Path, file: Path) -> None:
    """Runs the job until it has written results, and lets the JVM write its classes to a file."""
    ensure_topics(bootstrap, {"samples": {}, "results": {}}, _PARTITIONS)
    deadline = time.monotonic() + _RUN_SECONDS
    starts = itertools.count(1_766_000_000_000, 10_000)
    producer = Producer({"bootstrap.servers": bootstrap})

    def written() -> bool:
        """Whether there are results; sends ten more seconds of samples each time it is asked."""
        at = next(starts)
        for partition in range(_PARTITIONS):
            producer.produce("samples", json.dumps({"time": at, "name": "a", "value": 1.0}), partition=partition)
        producer.flush(10)
        return time.monotonic() > deadline or any(value.startswith(b"{") for value in values(bootstrap, "results"))

    share_module_path()
    log = state / "spark.log"
    options = class_archive.recording(file)
    session = StartingSpark(spark_jars(), java_home(), state / "spark", "1g", log, options).session(2)
    try:
        run(JOB, kafka=bootstrap, state=state, partitions=_PARTITIONS, until=written)
    finally:
        end(session, patience=_WRITE_SECONDS)


def main() -> None:
    """Makes the archive if there is none; a failure is said and costs nothing but time at each start."""
    console = Console(stderr=True)
    if class_archive.place(spark_jars()).is_file():
        return
    try:
        with saying("Preparing Spark's classes, once, so that it starts faster", console):
            make()
    except Exception as error:  # whatever it is: nothing depends on the archive
        # an error of Spark has no text once its JVM is gone
        reason = error if isinstance(error, NewnormalError) else type(error).__name__
        console.print(
            f"{reason}\nSpark starts without an archive of its classes, which takes some seconds more", markup=False
        )


if __name__ == "__main__":
    main()
