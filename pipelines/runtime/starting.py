"""Starts Spark's JVM before the rest is there, as Python's modules and the servers take seconds to come up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deploy.artifacts import spark_jars, store_jars
from deploy.java import java_home
from engine.private_files import private_folder
from engine.spark.cluster import Cluster
from engine.spark.session import StartingSpark, is_submitted
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings

_OF_STORE = ("spark.hadoop.", "spark.jars.")
"""How the names of those settings of Spark begin that say how a store is reached."""


def start_spark(settings: Settings) -> StartingSpark:
    """Starts the JVM of a pipeline.

    Args:
        settings: The settings; the servers' addresses are not needed.

    Raises:
        NewnormalError: If there is no Java that fits, or Spark's connector cannot be had; ``CLUSTER_UNREACHABLE``.
    """
    if not settings.spark.master:  # the machines of a cluster may read checkpoints there as other users
        private_folder(settings.state)
    log, work, memory = settings.state / "logs" / "spark.log", settings.state / "spark", settings.engine.driver_memory
    return StartingSpark(
        spark_jars(), java_home(), work, memory, log, cluster=cluster(settings),
        store_jars=store_jars(settings.folder("checkpoints")), options=settings.spark.options,
        optimizes=settings.engine.jvm_optimizes, memory=settings.engine.memory,
    )  # fmt: skip


def start_reader(settings: Settings) -> StartingSpark:
    """Starts the JVM of a small Spark of this process, which reads states and no topics, also if there is a cluster."""
    log, work = settings.state / "logs" / "spark-savepoints.log", settings.state / "spark-savepoints"
    of_store = {name: value for name, value in settings.spark.options.items() if name.startswith(_OF_STORE)}
    return StartingSpark(
        (), java_home(), work, settings.engine.driver_memory, log,
        store_jars=store_jars(settings.folder("checkpoints")), options=of_store, optimizes="never",
        memory=settings.engine.memory,
    )  # fmt: skip


def cluster(settings: Settings) -> Cluster | None:
    """The cluster that the settings name, which answers; ``None`` without one, and under ``spark-submit``.

    Raises:
        NewnormalError: ``CLUSTER_UNREACHABLE``; ``FILE_UNUSABLE`` if the archive of packages is missing.
    """
    spark = settings.spark
    if not spark.master or is_submitted():
        return None
    if spark.packed is not None and not spark.packed.is_file():
        what, accepted = f"there is no file {spark.packed}", "an archive that `newnormal cluster pack` has made"
        raise NewnormalError("FILE_UNUSABLE", what, "spark.packages", accepted, "nothing was started")
    found = Cluster(spark.master, spark.driver_host, spark.packed, spark.python, spark.options)
    found.check()
    return found


@contextmanager
def starting_spark(settings: Settings) -> Iterator[StartingSpark]:
    """A context manager: Spark's JVM starts in the background; it is ended at the end if nobody has used it."""
    starting = start_spark(settings)
    try:
        yield starting
    finally:
        starting.cancel()
