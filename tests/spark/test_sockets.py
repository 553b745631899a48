"""Spark runs for months: a micro-batch leaves no connection behind.

Spark 4.2.0 kept one for each stateful task (SPARK-58932). A chain of eight jobs had opened 20,000 files after forty
minutes, and ended.
"""

from __future__ import annotations

import psutil
import pytest
from pyspark.sql import SparkSession

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
