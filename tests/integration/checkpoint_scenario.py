"""A job whose checkpoint lies at an address: it goes on over kill -9, and from a savepoint in other shards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from engine.kafka.admin import ensure_topics
from engine.spark.hadoop_path import HadoopPath
from tests.integration.conftest import Pipeline
from tests.integration.own_jobs import Row, examples, feed, hour_ago, pass_time, read, some_words


def goes_on(pipeline: Pipeline, store: str, folder: Path) -> None:
    """Runs, kills, saves, restores and runs the job, and compares what it wrote with a computation of its own.

    Args:
        pipeline: Runs it; its environment says how Hadoop reaches the store.
        store: Address of the store.
        folder: Where the file of the job is written.
    """
    bootstrap, begin, place = pipeline.settings.kafka.bootstrap or "", hour_ago(), f"{store}/newnormal"
    said, counts, file = f"{folder.name}.words", f"{folder.name}.counts", str(folder / "words.py")
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
    checkpoints = HadoopPath(place) / pipeline.settings.namespace.rstrip(".")
    assert [each.name for each in checkpoints.iterdir()] == [counts]
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


def _newest(rows: list[Row]) -> Counter[tuple[str, int]]:
    """How often each word was said in each window, by the newest revision of each."""
    return Counter({(r["word"], r["window_start"]): r["n"] for r in sorted(rows, key=lambda r: r["revision"])})
