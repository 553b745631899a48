"""What an operator does while a chaos run lasts: replays into a second version, keeps a savepoint, promotes.

With ``--restore`` Kafka forgets the beginning of what is archived, and the replay begins in the archive; the first
version is put back to the savepoint; and a third version is forked from it and retired.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.address import kafka_options
from engine.clock import now_ms
from engine.spark.checkpoint_offsets import committed_offsets
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.archive.archived import readers
from pipelines.savepoints.catalogue import Catalogue
from tests.chaos.runs.driver import DriverProcess, environment

SECOND, THIRD = "v2", "v3"
_SAVEPOINT = "chaos"
_COMMAND_SECONDS, _KAFKA_SECONDS = 600.0, 20.0
"""A command that was ended in the middle leaves the job half done: it has time, also while two versions start."""


@dataclass(frozen=True)
class Operation:
    """One thing that an operator does.

    Attributes:
        name: What it is called.
        due: At which share of the run it is done.
        act: Does it; ``False`` if it must be tried again later, as a server was away.
    """

    name: str
    due: float
    act: Callable[[], bool]


def operations(
    first: DriverProcess, second: DriverProcess, settings: Settings, restored: list[int] | None
) -> Iterator[Operation]:
    """The operations of a run, in their order.

    Args:
        first: The pipeline.
        second: The process that replays into the second version and then keeps it live.
        settings: The settings of the pipeline, with the addresses of the servers.
        restored: If the replay begins in the archive, and the savepoint is restored and forked: takes the instants at
            which it was put back, or that was tried, epoch milliseconds.
    """

    def replay() -> bool:
        if restored is not None and not forgotten(settings):
            return False
        second.start()
        return True

    def restore() -> bool:
        first.stop()
        if restored is not None:
            restored.append(now_ms())
        done = command(second, "savepoint", "restore", _SAVEPOINT, "--yes")
        first.start()
        return done

    def retire() -> bool:
        command(second, "savepoint", "fork", _SAVEPOINT, "--as", THIRD)  # it may be there since an attempt before
        return command(second, "retire", THIRD, "--yes")

    yield Operation(f"replay into {SECOND}", 0.1, replay)
    yield Operation("savepoint", 0.3, lambda: command(second, "savepoint", "create", _SAVEPOINT))
    yield Operation(f"promote {SECOND}", 0.5, lambda: command(second, "promote", SECOND, "--yes"))
    if restored is not None:
        yield Operation("restore the savepoint", 0.55, restore)
    yield Operation("promote v1", 0.75, lambda: command(second, "promote", "v1", "--yes"))
    if restored is not None:
        yield Operation(f"fork and retire {THIRD}", 0.8, retire)


def saved_until(settings: Settings) -> int:
    """When all jobs had completed the micro-batches that the savepoint has, or earlier; epoch milliseconds."""
    catalogue = Catalogue(settings)
    savepoint = catalogue.get(_SAVEPOINT)
    folders = [(catalogue.job_folder(savepoint, job), each.batch) for job, each in savepoint.jobs.items()]
    commits = [folder / "commits" / str(batch) for folder, batch in folders]
    return min(int(file.stat().st_mtime * 1000) if file.exists() else 0 for file in commits)


def forgotten(settings: Settings) -> bool:
    """Deletes from Kafka the beginning of what the archive has and v1 has read; ``False`` if some of it is missing."""
    checkpoints, wanted = settings.folder("checkpoints"), list[TopicPartition]()
    for job, name in (("extractor", topics.TELEMETRY), ("templates", topics.LOGS)):
        topic = settings.topic(name)
        kept = readers(settings, [topic])[topic].end
        for p, read in committed_offsets(checkpoints / job).get(topic, {}).items():
            wanted.append(TopicPartition(topic, int(p), min(kept.get(int(p), 0), read)))
    if len(wanted) < 2 * settings.kafka.partitions or not all(each.offset for each in wanted):
        return False
    admin = AdminClient(kafka_options(settings.kafka.bootstrap or ""))
    try:
        for future in admin.delete_records(wanted, request_timeout=_KAFKA_SECONDS).values():
            future.result()
    except KafkaException:
        return False
    return True


def command(driver: DriverProcess, *words: str) -> bool:
    """Runs a short command with a pipeline's settings; ``True`` if it succeeded."""
    with driver.log.open("ab") as log:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pipelines.cli.main", *words],
                env=environment(driver.settings),
                cwd=driver.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0
