"""Whoever else is on the machine cannot stop a job by a connection to a port that Spark opens for a moment.

Spark hands the state of a task to Python by a socket of its own. As a TCP port without a password it takes the first
connection as that of its worker, e.g. of a port scan, or of a client that still looks for a server which had the
same port before; the worker then waits for ever.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from engine.testing import run_all
from tests.spark.test_outage import counting, idle
from tests.stack.running import wait_for

pytestmark = pytest.mark.spark


@contextlib.contextmanager
def stranger(spark: SparkSession) -> Iterator[set[int]]:
    """Somebody who connects to each TCP port on which the JVM begins to listen; gives these ports."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm, over = psutil.Process(gateway.proc.pid), threading.Event()
    known, met, held = listening(jvm), set[int](), []

    def look() -> None:
        while not over.is_set():
            for port in listening(jvm) - known:
                known.add(port)
                with contextlib.suppress(OSError):
                    held.append(socket.create_connection(("127.0.0.1", port), 1))
                    met.add(port)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield met
    finally:
        over.set()
        looking.join()
        for each in held:
            each.close()


def listening(process: psutil.Process) -> set[int]:
    """The TCP ports on which a process listens."""
    return {each.laddr.port for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN}


def test_a_stranger_s_connections_stop_no_job(spark: SparkSession) -> None:
    java: Any = spark.sparkContext._jvm
    with stranger(spark) as met:
        (run,) = run_all([(counting(), idle())], "spark", shards=2)
        assert not met, "the JVM has listened on a TCP port"
        opened = java.java.net.ServerSocket(0)
        try:
            wait_for(lambda: opened.getLocalPort() in met, 60, "the stranger to find a port that the JVM opens")
        finally:
            opened.close()
    assert len(run.watermarks) >= 6, "micro-batches, each with a task of each shard"
