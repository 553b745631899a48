"""Starts Spark's JVM before the rest is there, as Python's modules and the servers take seconds to come up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deploy.artifacts import spark_jars
from deploy.java import java_home
from engine.spark.session import StartingSpark
from pipelines.contracts.settings import Settings


def start_spark(settings: Settings) -> StartingSpark:
    """Starts the JVM of a pipeline.

    Args:
        settings: The settings; the servers' addresses are not needed.

    Raises:
        NewnormalError: If there is no Java that fits, or Spark's connector cannot be had.
    """
    log = settings.state / "logs" / "spark.log"
    return StartingSpark(spark_jars(), java_home(), settings.state / "spark", settings.engine.driver_memory, log)


@contextmanager
def starting_spark(settings: Settings) -> Iterator[StartingSpark]:
    """A context manager: Spark's JVM starts in the background; it is ended at the end if nobody has used it."""
    starting = start_spark(settings)
    try:
        yield starting
    finally:
        starting.cancel()
