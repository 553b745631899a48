"""Jobs on a real standalone Spark cluster, whose executors and workers are killed under load: the output is right."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kafka.admin import ensure_topics
from engine.kafka.continuation import Ledgers
from engine.spec.duration import duration_ms
from pipelines.contracts import topics
from pipelines.contracts.version_names import FIRST
from tests.chaos.cluster import StandaloneCluster, standalone
from tests.chaos.faults import Servers
from tests.chaos.runs.comparison import REFERENCE, make_reference, site
from tests.chaos.runs.load import Load
from tests.chaos.runs.scenario import Scenario
from tests.chaos.runs.verifier.verify import verify
from tests.chaos.watching import results
from tests.integration.conftest import Pipeline, pipeline
from tests.integration.own_jobs import Row, examples, feed, hour_ago, pass_time, read, some_words

pytestmark = [pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]
__all__ = ["pipeline"]

LATENESS = "3m"
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


def kill_one(cluster: StandaloneCluster, running: Pipeline, worker: int | None = None) -> None:
    """Kills an executor, and waits until another is there in its place."""
    count, victim = len(cluster.executors()), cluster.kill_executor(worker)
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
    settings = on_cluster.settings
    entries = Ledgers(bootstrap, settings.topic(topics.LEDGER)).entries(f"{settings.owner}{counts}")
    assert {shard for _, shard in entries} >= {0, 1}, "each shard has written its own"


@pytest.mark.long
def test_the_whole_chain_survives_kills_of_executors_and_of_a_worker_that_have_no_packages_of_ours(
    abused: tuple[Pipeline, Servers], cluster: StandaloneCluster, tmp_path: Path
) -> None:
    running, _ = abused
    settings, packed, local = running.settings, tmp_path / "newnormal.tar", dict(running.environment)
    bootstrap, window = settings.kafka.bootstrap or "", duration_ms(settings.window.size)
    running.command("cluster", "pack", str(packed))
    local |= {"NEWNORMAL_WINDOW__ALLOWED_LATENESS": LATENESS, "NEWNORMAL_ENGINE__MAX_MESSAGES": "2000"}
    local["NEWNORMAL_SPARK__CHECKPOINTS"] = str(tmp_path / "shared")
    running.environment = local | {
        "NEWNORMAL_SPARK__MASTER": cluster.url,
        "NEWNORMAL_SPARK__PACKAGES": str(packed),
        "NEWNORMAL_SPARK__PYTHON": os.path.realpath(sys.executable),
    }
    make_reference(settings)
    begin = (int(time.time() * 1000) - 8 * 3_600_000) // window * window

    def a_result_comes() -> None:
        before = results(running)
        running.wait("a result", lambda: results(running) > before, SECONDS)

    with Load(bootstrap, Scenario(1, begin), speed=5.0) as load:
        running.start()
        running.wait("the first documents", lambda: bool(running.documents()), SECONDS)
        modules = cluster.loaded()
        of_polars = [path for path in modules if "polars" in path]
        assert of_polars and all("newnormal-packages/" in path for path in of_polars), "Python loads the archive only"
        for worker in (0, 1, 0):
            kill_one(cluster, running, worker)
            a_result_comes()
        cluster.kill_worker(0)
        a_result_comes()
        cluster.add_worker()
        running.wait(
            "an executor of the new worker", lambda: bool(cluster.executors(len(cluster.workers) - 1)), SECONDS
        )
        a_result_comes()
        until = load.finish(window)
        running.stop()
    assert "Traceback" not in running.log.read_text()
    running.command("run", "--until", "now", seconds=SECONDS)
    running.environment = local
    running.command("run", "--as", REFERENCE, "--until", "now", seconds=SECONDS)
    late = settings.window.model_copy(update={"allowed_lateness": LATENESS})
    tally = verify(site(settings.model_copy(update={"window": late}), until))
    assert not tally.findings, "\n".join(map(str, tally.findings))
    print({wrong: tally.count(wrong) for wrong in ("lost", "doubled", "different")}, tally.compared)
    assert tally.compared[f"windows of metrics of {FIRST}"] > 1_000
    assert (
        tally.compared[f"documents of {FIRST}"] == tally.compared[f"verdicts of the reference run of {FIRST}"] > 1_000
    )
