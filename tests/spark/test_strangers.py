"""Whoever else is on the machine can neither stop a job nor speak with Spark.

Spark hands the state of a task to Python by a socket of its own. As a TCP port without a password it takes the first
connection as that of its worker, e.g. of a port scan, or of a client that still looks for a server which had the
same port before; the worker then waits for ever.
"""

from __future__ import annotations

import contextlib
import socket
import struct
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


def test_spark_answers_nobody_who_does_not_know_its_secret(spark: SparkSession) -> None:
    port = int(spark.conf.get("spark.driver.port") or 0)
    asked = question(spark, port)
    with socket.create_connection(("127.0.0.1", port), 5) as stranger:
        stranger.settimeout(30)
        stranger.sendall(asked)
        answer = stranger.recv(1 << 16)
    assert answer[8] == FAILURE, "the ninth byte says what kind of answer it is"
    assert b"SASL" in answer


FAILURE = 5


def question(spark: SparkSession, port: int) -> bytes:
    """A message of Spark's protocol between processes that asks the driver for one of its services."""
    java: Any = spark.sparkContext._jvm
    out = java.java.io.ByteArrayOutputStream()
    data = java.java.io.DataOutputStream(out)
    data.writeBoolean(False)  # the sender has no address
    data.writeBoolean(True)
    data.writeUTF("127.0.0.1")
    data.writeInt(port)
    data.writeUTF("endpoint-verifier")
    objects = java.java.io.ObjectOutputStream(data)
    objects.writeObject(getattr(java, "org.apache.spark.rpc.netty.RpcEndpointVerifier$CheckExistence")("x"))
    objects.flush()
    body = bytes(out.toByteArray())
    request, number = 3, 1
    return struct.pack(">QBQI", 8 + 1 + 8 + 4 + len(body), request, number, len(body)) + body
