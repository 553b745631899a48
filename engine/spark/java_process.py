"""The JVM of this process: that of Spark, if it runs or is just starting, otherwise a small one without Spark."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

_HEAP = "256m"
_lock = threading.Lock()
_starting: list[threading.Thread] = []
_small: list[Any] = []


def announce(starting: threading.Thread) -> None:
    """Says that Spark's JVM is starting in a thread, so that nobody who needs one starts another meanwhile."""
    _starting[:] = [starting]


def java(options: Callable[[], Mapping[str, str]]) -> Any:
    """Java's packages, as Py4J shows them; the first call may start a JVM, which takes a second or two.

    A small JVM ends with this process. It is used until Spark has one, and by processes that never start Spark.

    Args:
        options: Gives the settings of Spark with which a small JVM is started.
    """
    for thread in _starting:
        thread.join()
    gateway = SparkContext._gateway
    if gateway is not None:
        return gateway.jvm
    with _lock:
        if _small and _small[0][0] != os.getpid():
            _small.clear()  # a forked process has no connection of its own
        if not _small:
            conf = SparkConf(loadDefaults=False).setAll(list({**options(), "spark.driver.memory": _HEAP}.items()))
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            _small.append((os.getpid(), launch_gateway(conf, quiet)))  # type: ignore[no-untyped-call]
        return _small[0][1].jvm
