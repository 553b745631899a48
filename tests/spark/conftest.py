"""One Spark session for the tests of this directory, in a JVM of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deploy.artifacts import spark_jars
from deploy.java import java_home
from engine.spark.session import end, spark_session


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session; its JVM compiles once and simply, since nothing here runs for long."""
    work = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]))
        session = spark_session(spark_jars(), java_home(), 2, work, "1g", log=work / "spark.log")
    yield session
    end(session)
