"""Checkpoints in a real HDFS: a job goes on over kill -9, and its state is saved and divided anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kafka.admin import ensure_topics
from engine.spark.hadoop_path import HadoopPath
from tests.hdfs import hdfs
from tests.integration.conftest import Pipeline
from tests.integration.own_jobs import Row, examples, feed, hour_ago, pass_time, read, some_words

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as address:
        yield address


def _newest(rows: list[Row]) -> Counter[tuple[str, int]]:
    """How often each word was said in each window, by the newest revision of each."""
    return Counter({(r["word"], r["window_start"]): r["n"] for r in sorted(rows, key=lambda r: r["revision"])})


@pytest.mark.long
def test_a_job_goes_on_over_kill_9_and_from_a_savepoint_in_other_shards(
    pipeline: Pipeline, store: str, tmp_path: Path
) -> None:
    bootstrap, begin, place = pipeline.settings.kafka.bootstrap or "", hour_ago(), f"{store}/newnormal"
    said, counts, file = f"{tmp_path.name}.words", f"{tmp_path.name}.counts", str(tmp_path / "words.py")
    Path(file).write_text(examples()["word_count"].replace('"words"', f'"{said}"').replace('"counts"', f'"{counts}"'))
    pipeline.environment["NEWNORMAL_SPARK__CHECKPOINTS"] = place
    ensure_topics(bootstrap, {said: {}}, 4)
    parts = [some_words(5_000, begin + n * 300_000, seed=n) for n in range(3)]

    def total() -> int:
        return sum(_newest([row for row in read(bootstrap, counts) if row["word"] != "end"]).values())

    feed(bootstrap, said, parts[0])
    pipeline.start(file)
    pipeline.wait("a count", lambda: total() > 0)
    pipeline.kill()
    feed(bootstrap, said, parts[1])
    pipeline.start(file)
    pipeline.wait("a count after the kill", lambda: total() > len(parts[0]))
    pipeline.stop()
    folder = HadoopPath(place) / pipeline.settings.namespace.rstrip(".")
    assert [each.name for each in folder.iterdir()] == [counts]
    pipeline.command("run", file, "--until", "now")
    pipeline.command("savepoint", "create", "here", "--file", file)
    told = pipeline.command("savepoint", "restore", "here", "--file", file, "--shards", "4", "--yes")
    assert "will be computed and written again" not in told
    pipeline.environment["NEWNORMAL_ENGINE__SHARDS"] = "4"
    feed(bootstrap, said, parts[2])
    pass_time(bootstrap, said, {"time": begin + 1_000_000, "word": "end"}, 4)
    pipeline.command("run", file, "--until", "now")
    rows = [row for row in read(bootstrap, counts) if row["word"] != "end"]
    expected = Counter((row["word"], row["time"] // 10_000 * 10_000) for part in parts for row, _ in part)
    assert _newest(rows) == expected
    assert len(rows) == len({(row["word"], row["window_start"], row["revision"]) for row in rows}), "written once"


def test_a_store_that_does_not_answer_stops_the_start_with_its_name(pipeline: Pipeline) -> None:
    pipeline.environment["NEWNORMAL_SPARK__CHECKPOINTS"] = "hdfs://127.0.0.1:1/newnormal"
    said = pipeline.refused("run", "extractor")
    assert "CHECKPOINT_UNREACHABLE" in said and "hdfs://127.0.0.1:1/newnormal" in said and "Traceback" not in said
