"""Jobs on a real standalone Spark cluster, whose executors and workers are killed under load: the output is right."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from tests.chaos.cluster import StandaloneCluster, standalone
from tests.chaos.feed import HOSTS, METRICS, WINDOW, Feed
from tests.chaos.verify import verify
from tests.chaos.watching import results, stored
from tests.integration.conftest import Pipeline, pipeline
from tests.integration.own_jobs import Row, examples, feed, hour_ago, pass_time, read, some_words

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]
__all__ = ["pipeline"]

SECONDS = 900.0
"""The longest wait for anything; what happens takes a fraction of it, on a machine that does nothing else."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A master and two workers of one core each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        with standalone(tmp_path_factory.mktemp("cluster")) as running:
            yield running


@pytest.fixture
def on_cluster(pipeline: Pipeline, cluster: StandaloneCluster) -> Pipeline:
    """A pipeline, not started, whose jobs will run on the cluster."""
    pipeline.environment |= {
        "NEWNORMAL_SPARK__MASTER": cluster.url,
        "NEWNORMAL_SPARK__CHECKPOINTS": str(pipeline.log.parent / "shared"),
    }
    return pipeline


def kill_one(cluster: StandaloneCluster, running: Pipeline) -> None:
    """Kills an executor, and waits until another is there in its place."""
    victim, count = cluster.kill_executor(), len(cluster.executors())
    running.wait("another executor", lambda: _others(cluster, victim) >= count, SECONDS)


def _others(cluster: StandaloneCluster, killed: int) -> int:
    return sum(each.pid != killed and each.is_running() for each in cluster.executors())


def counted(rows: list[Row]) -> Counter[tuple[str, int]]:
    """How often each word was said in each window, by the newest revision of each."""
    newest = {(row["word"], row["window_start"]): row["n"] for row in sorted(rows, key=lambda row: row["revision"])}
    return Counter(newest)


@pytest.mark.long
def test_a_cluster_whose_machines_cannot_run_the_jobs_is_refused_before_any_starts(on_cluster: Pipeline) -> None:
    on_cluster.environment |= {"NEWNORMAL_SPARK__PYTHON": "/no/such/python"}
    on_cluster.start("extractor")
    assert on_cluster.process is not None
    assert on_cluster.process.wait(SECONDS) == 2
    said = on_cluster.log.read_text()
    assert "WORKERS_UNFIT" in said and "/no/such/python" in said and "spark.packages" in said
    assert "Traceback" not in said and "job started" not in said


def test_the_word_count_survives_kills_of_executors(
    on_cluster: Pipeline, cluster: StandaloneCluster, tmp_path: Path
) -> None:
    bootstrap, begin = on_cluster.settings.kafka.bootstrap or "", hour_ago()
    said, counts = f"{tmp_path.name}.words", f"{tmp_path.name}.counts"
    file = tmp_path / "words_on_a_cluster.py"
    file.write_text(examples()["word_count"].replace('"words"', f'"{said}"').replace('"counts"', f'"{counts}"'))
    ensure_topics(bootstrap, {said: {}}, 4)
    parts = [some_words(5_000, begin + n * 300_000, seed=n) for n in range(3)]
    feed(bootstrap, said, parts[0])
    on_cluster.start(str(file))
    for part in parts[1:]:
        before = len(read(bootstrap, counts))
        on_cluster.wait("a count", lambda before=before: len(read(bootstrap, counts)) > before, SECONDS)
        feed(bootstrap, said, part)
        kill_one(cluster, on_cluster)
    pass_time(bootstrap, said, {"time": begin + 1_000_000, "word": "end"}, 4)
    words = [word for part in parts for word in part]
    on_cluster.wait("all words", lambda: sum(counted(read(bootstrap, counts)).values()) >= len(words), SECONDS)
    on_cluster.stop()
    rows = [row for row in read(bootstrap, counts) if row["word"] != "end"]
    expected = Counter((row["word"], row["time"] // 10_000 * 10_000) for row, _ in words)
    assert counted(rows) == expected
    assert len(rows) == len({(row["word"], row["window_start"], row["revision"]) for row in rows}), "written once"


@pytest.mark.long
def test_the_chain_survives_kills_of_executors_and_of_a_worker(
    on_cluster: Pipeline, cluster: StandaloneCluster
) -> None:
    settings = on_cluster.settings
    begin = (int(time.time() * 1000) - 3 * 3_600_000) // WINDOW * WINDOW
    load = Feed(settings.kafka.bootstrap or "", settings.topic(topics.RAW_JSON), begin)
    load.start()
    on_cluster.start("normalizer", "extractor", "detector", "sink")
    on_cluster.wait("the first documents", lambda: len(on_cluster.documents()) > HOSTS * METRICS, SECONDS)

    def a_result_comes() -> None:
        before = results(on_cluster)
        on_cluster.wait("a result", lambda: results(on_cluster) > before, SECONDS)

    kill_one(cluster, on_cluster)
    a_result_comes()
    cluster.kill_worker(0)
    a_result_comes()
    cluster.add_worker()
    on_cluster.wait("an executor of the new worker", lambda: bool(cluster.executors(2)), SECONDS)
    kill_one(cluster, on_cluster)
    end = load.finish()
    count = (end - begin) // WINDOW * HOSTS * METRICS
    on_cluster.wait("all documents", lambda: stored(on_cluster, end) >= count, SECONDS)
    verdicts = verify(on_cluster, begin, end)
    assert verdicts["documents"] == count
