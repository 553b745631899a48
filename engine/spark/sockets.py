"""The sockets between Spark's JVM and its Python processes: files in a folder of this user instead of TCP ports.

Spark opens some for each micro-batch. As a TCP port on the loopback address one takes the first connection that comes
as that of its Python worker, and the one that serves the state asks for no password. So a port scan, or a client that
still looks for a server which had the same port before, would stop a job for ever, and whoever else works on the
machine could read and change its state.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

from engine.spark import shared_memory

_ENABLED = "spark.python.unix.domain.socket.enabled"
_FOLDER = "spark.python.unix.domain.socket.dir"
_NAME = ".sockets"
EVERY = 500
"""After so many micro-batches of a job the JVM forgets the sockets that are gone; a thousand take some 200 kB."""


def settings() -> dict[str, str]:
    """Spark's settings for a JVM of this process; empty where the system has no such folder: then TCP is used."""
    folder = shared_memory.folder_of(_NAME)
    return {_ENABLED: "true", _FOLDER: str(folder)} if folder else {}


def folder_of(spark: SparkSession) -> str | None:
    """The folder of a session that has one of this process; ``None``: its sockets are the business of others."""
    folder = spark.sparkContext.getConf().get(_FOLDER)
    return folder if folder and folder == settings().get(_FOLDER) else None


def tend(spark: SparkSession, folder: str, batch_id: int) -> None:
    """Before each micro-batch: makes the folder anew if it is gone, and lets the JVM forget sockets from time to time.

    Spark notes each socket, so that the JVM would remove it at its end, and removes it before; the JVM has no way to
    take such a note back. So its list is replaced by one without them.
    """
    shared_memory.folder_of(_NAME)
    if batch_id % EVERY:
        return
    # the list may just have changed, or lie elsewhere in another Java; then the next call does
    with suppress(Py4JError, Py4JNetworkError, AttributeError):
        java: Any = spark.sparkContext._jvm.java  # type: ignore[union-attr]
        field = java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
        field.setAccessible(True)
        kept = java.util.LinkedHashSet(field.get(None))
        pattern = java.util.regex.Pattern
        kept.removeIf(pattern.compile(pattern.quote(f"{folder}/")).asPredicate())
        field.set(None, kept)
