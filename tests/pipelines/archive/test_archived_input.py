"""Where a job with an archive begins, while Kafka is away and while it deletes; on archives and checkpoints on disk."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.kafka.offsets import KafkaOffsets, Offsets
from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import load
from pipelines.jobs.archive.layout import TopicFolder
from pipelines.jobs.archive.writer import ArchiveWriter
from pipelines.runtime import archived_input
from pipelines.runtime.archived_input import ArchivedInput, InputUnknown, reads_archive
from tests.pipelines.archive.test_archive_files import MIDNIGHT, kafka, message

JOB, TOPIC = "extractor", "telemetry"
ENDS = 50
"""The archive has the offsets below this one."""


@pytest.fixture
def archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int | None], Any]]:
    """Asks where the job reads, given the first offset that Kafka still has (``None``: Kafka does not answer).

    The answer is the archive's span, or ``None`` for the log.
    """
    folder = TopicFolder(tmp_path / "archive", TOPIC)
    rows = kafka(*((0, offset, message(MIDNIGHT + offset)) for offset in range(ENDS)))
    ArchiveWriter(folder, Telemetry).write("a-000000000", rows, {0: 0}, {0: ENDS})
    held = socket.socket()
    held.bind(("127.0.0.1", 0))  # it listens to nobody, and no other process gets its port meanwhile
    settings = load(
        **{
            "kafka.bootstrap": f"127.0.0.1:{held.getsockname()[1]}",
            "archive.path": str(tmp_path / "archive"),
            "namespace": "",
        }
    )
    (tmp_path / "checkpoints" / JOB).mkdir(parents=True)
    asked = ArchivedInput(settings, tmp_path / "checkpoints", {JOB: {(TOPIC, 0): 0}})
    spans: list[Any] = []

    def stream(spark: object, readers: object, start: Any, end: Any, most: int) -> Any:
        spans.append((start[TOPIC]["0"], end[TOPIC]["0"]))
        return spans[-1]

    monkeypatch.setattr(archived_input, "archive_rows", stream)

    def ask(first: int | None) -> Any:
        if first is not None:
            has: Offsets = {(TOPIC, 0): first}
            monkeypatch.setattr(KafkaOffsets, "starts", lambda _: has)
        return asked.rows(None, JOB, [TOPIC])  # type: ignore[arg-type]

    yield ask
    held.close()


def spark_wrote(tmp_path: Path, begin: int, planned: int, committed: bool = False) -> None:
    """What Spark's source of Kafka leaves of a first micro-batch."""
    checkpoint = tmp_path / "checkpoints" / JOB
    files = {"sources/0/0": f'v1\n{{"{TOPIC}":{{"0":{begin}}}}}'}
    files["offsets/0"] = f"v1\n{{}}\n{json.dumps({TOPIC: {'0': planned}})}"
    if committed:
        files["commits/0"] = "v1\n{}"
    for name, text in files.items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(text)


def test_a_job_waits_while_kafka_does_not_say_what_it_still_has(archived: Callable[[int | None], Any]) -> None:
    with pytest.raises(InputUnknown, match="Kafka does not say"):
        archived(None)
    assert archived(2) == (0, ENDS)


def test_what_kafka_deletes_before_the_first_micro_batch_is_read_comes_from_the_archive(
    archived: Callable[[int | None], Any], tmp_path: Path
) -> None:
    assert archived(0) is None
    spark_wrote(tmp_path, 0, 22)
    assert archived(2) == (0, ENDS)


def test_a_micro_batch_that_is_repeated_waits_until_the_archive_has_all_of_it(
    archived: Callable[[int | None], Any], tmp_path: Path
) -> None:
    assert archived(0) is None
    spark_wrote(tmp_path, 0, ENDS + 1)
    with pytest.raises(InputUnknown, match="has not got as far"):
        archived(2)
    spark_wrote(tmp_path, 0, ENDS)
    assert archived(2) == (0, ENDS)


def test_a_job_that_has_read_what_the_archive_had_is_one_of_the_log(
    archived: Callable[[int | None], Any], tmp_path: Path
) -> None:
    assert archived(0) is None
    assert reads_archive(tmp_path / "checkpoints" / JOB)
    spark_wrote(tmp_path, 0, 22, committed=True)
    assert archived(0) is None
    assert not reads_archive(tmp_path / "checkpoints" / JOB)
