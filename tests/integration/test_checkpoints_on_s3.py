"""Checkpoints in a real S3 store: a job goes on over kill -9, and its state is saved and divided anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyspark import SparkContext

from deploy.artifacts import store_jars
from engine.kafka.admin import ensure_topics
from engine.spark import hadoop_path, java_process
from engine.spec.errors import NewnormalError
from tests.chaos.cluster import standalone
from tests.integration import checkpoint_scenario
from tests.integration.conftest import Pipeline
from tests.integration.own_jobs import examples, feed, hour_ago, read, some_words
from tests.s3 import BUCKET, Store, s3

pytestmark = [
    *(pytest.mark.servers, pytest.mark.spark, pytest.mark.slow, pytest.mark.long),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    try:
        store_jars("s3a://")
    except NewnormalError as error:
        pytest.skip(f"Hadoop's connector for S3 cannot be had: {error}")
    with s3(tmp_path_factory.mktemp("s3") / "objects") as running:
        yield running


@pytest.fixture(autouse=True)
def reached(store: Store, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is reached by the settings, with the login from the environment; also from this process."""
    for name, value in store.login.items():
        monkeypatch.setenv(name, value)
        pipeline.environment[name] = value
    pipeline.environment["NEWNORMAL_SPARK__OPTIONS"] = json.dumps(store.options)
    hadoop_path.configure(store.options)
    hadoop_path.connect(store_jars)
    monkeypatch.setattr(java_process, "_small", [])  # one that another test has started lacks the connector
    monkeypatch.setattr(SparkContext, "_gateway", None)


def test_a_job_goes_on_over_kill_9_and_from_a_savepoint_in_other_shards(pipeline: Pipeline, tmp_path: Path) -> None:
    checkpoint_scenario.goes_on(pipeline, f"s3a://{BUCKET}", tmp_path)


def test_on_a_cluster_the_executors_keep_their_state_there_too(pipeline: Pipeline, tmp_path: Path) -> None:
    with standalone(tmp_path / "cluster") as machines:
        pipeline.environment["NEWNORMAL_SPARK__MASTER"] = machines.url
        checkpoint_scenario.goes_on(pipeline, f"s3a://{BUCKET}/cluster", tmp_path)


def test_keys_among_the_settings_log_in_and_are_in_no_command_line(
    pipeline: Pipeline, store: Store, tmp_path: Path
) -> None:
    bootstrap, said, counts = pipeline.settings.kafka.bootstrap or "", f"{tmp_path.name}.said", f"{tmp_path.name}.count"
    file = tmp_path / "words.py"
    file.write_text(examples()["word_count"].replace('"words"', f'"{said}"').replace('"counts"', f'"{counts}"'))
    key, secret = (pipeline.environment.pop(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    keys = {"spark.hadoop.fs.s3a.access.key": key, "spark.hadoop.fs.s3a.secret.key": secret}
    pipeline.environment["NEWNORMAL_SPARK__OPTIONS"] = json.dumps(store.options | keys)
    pipeline.environment["NEWNORMAL_SPARK__CHECKPOINTS"] = f"s3a://{BUCKET}/with-keys"
    ensure_topics(bootstrap, {said: {}}, 4)
    feed(bootstrap, said, some_words(1_000, hour_ago()))
    pipeline.start(str(file))
    pipeline.wait("a count", lambda: bool(read(bootstrap, counts)))
    assert pipeline.process
    lines = []
    for each in psutil.Process(pipeline.process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # one that has just ended has no command line any more
            lines.append(" ".join(each.cmdline()))
    assert any("spark.driver.memory" in line for line in lines), lines
    assert not any(secret in line for line in lines)
    assert list((store.folder / BUCKET / "with-keys").rglob("commits/0"))


def test_a_wrong_key_stops_the_start_with_the_stores_reason(pipeline: Pipeline) -> None:
    pipeline.environment["NEWNORMAL_SPARK__CHECKPOINTS"] = f"s3a://{BUCKET}/newnormal"
    pipeline.environment["AWS_SECRET_ACCESS_KEY"] = "another"
    said = pipeline.refused("run", "extractor")
    assert "CHECKPOINT_UNREACHABLE" in said and "403" in said and "Traceback" not in said
