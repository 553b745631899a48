"""Spark runs for months: a micro-batch leaves no connection behind.

Spark 4.2.0 kept one for each stateful task (SPARK-58932). A chain of eight jobs had opened 20,000 files after forty
minutes, and ended.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from deploy.embedded.endpoints import Endpoints
from engine.examples import cards
from engine.examples.live import Live
from engine.spark import sockets
from engine.testing import run_all
from tests.spark.test_outage import counting, idle

pytestmark = pytest.mark.spark


def left_open(spark: SparkSession) -> int:
    """The connections of the JVM that its other end has closed."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    connections = psutil.Process(gateway.proc.pid).net_connections("tcp")
    return sum(each.status == psutil.CONN_CLOSE_WAIT for each in connections)


def test_connections_between_spark_and_its_python_workers_are_closed(spark: SparkSession) -> None:
    before = left_open(spark)
    (run,) = run_all([(counting(), idle())], "spark", shards=2)
    assert len(run.watermarks) >= 6, "micro-batches, each with a task of each shard"
    assert left_open(spark) - before <= 2


def jvm(spark: SparkSession) -> Any:
    """The JVM of the session."""
    return spark.sparkContext._jvm


def noted(spark: SparkSession) -> list[str]:
    """The files that the JVM would remove at its end."""
    field = jvm(spark).java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    field.setAccessible(True)
    return [str(path) for path in field.get(None)]


@pytest.mark.servers
def test_the_jvm_forgets_sockets_that_are_gone_and_nothing_else(
    spark: SparkSession, endpoints: Endpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = spark.conf.get("spark.python.unix.domain.socket.dir")
    jvm(spark).java.io.File("/tmp/newnormal-of-somebody-else").deleteOnExit()
    monkeypatch.setattr(sockets, "EVERY", 1)
    payments = cards.compute(Live(endpoints.bootstrap, tmp_path))
    assert payments.decisions
    assert sum(path.startswith(f"{folder}/") for path in noted(spark)) <= 12, "those of a micro-batch of two jobs"
    assert "/tmp/newnormal-of-somebody-else" in noted(spark)


@pytest.mark.servers
def test_jobs_go_on_when_the_folder_of_the_sockets_was_removed(
    spark: SparkSession, endpoints: Endpoints, tmp_path: Path
) -> None:
    """The system does so at the end of a user's last session (`RemoveIPC` of logind)."""
    folder = Path(spark.conf.get("spark.python.unix.domain.socket.dir") or "")
    shutil.rmtree(folder.parent)
    assert cards.compute(Live(endpoints.bootstrap, tmp_path)).decisions
    assert folder.parent.stat().st_mode & 0o77 == 0, "it is still closed to others"
