"""A Kafka of somebody else: a broker with Kafka's own jars, which bounds the compressed batch only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.artifacts import KAFKA, ensure
from deploy.embedded.kafka import Kafka, answers
from deploy.java import java_home


def free() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def foreign_kafka(folder: Path, heap: str = "512m") -> Iterator[str]:
    """Runs such a broker in a folder; gives its address."""
    kafka = Kafka(str(java_home()), f"{ensure(KAFKA)}/*", str(folder), heap)
    ports = {"port": free(), "controller": free()}
    how = kafka.launch(ports)
    with (folder / "log.txt").open("ab") as log:
        broker = subprocess.Popen(
            how.argv, cwd=how.directory, env=dict(how.environ), stdout=log, stderr=log, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 120
        while not answers(kafka.address(ports)):
            assert time.monotonic() < deadline, (folder / "log.txt").read_text()[-2000:]
        yield kafka.address(ports)
    finally:
        os.killpg(broker.pid, signal.SIGKILL)
        broker.wait()
