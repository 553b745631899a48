"""Kafka and Elasticsearch of a chaos run: children of this process, which it starts again when they have ended."""

from __future__ import annotations

import shutil
import socket
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploy.embedded.elasticsearch import runtime_dir
from deploy.embedded.kafka import Kafka
from deploy.embedded.ports import HOST, PortClaims
from deploy.embedded.server_process import ServerProcess
from deploy.embedded.start_plan import AnyServer, plan
from engine.spec.errors import NewnormalError
from engine.waiting import until
from pipelines.contracts.settings import Settings
from tests.chaos.runs.processes import Target, below
from tests.chaos.runs.relay import Relay

_START_SECONDS = 600.0
"""Two versions of the pipeline start at the same time, each with a cold JVM for each of eight jobs: on two cores the
servers have little of the processor meanwhile."""
_PREFERRED = {"port": 19092, "controller": 19093, "published": 19094, "elasticsearch": 19200}


@dataclass
class Server:
    """A server and its ports, which stay the same over restarts.

    Args:
        config: Which server, with all its files.
        ports: Its ports by purpose.
        log: File of its output.
    """

    config: AnyServer
    ports: dict[str, int]
    log: Path
    process: ServerProcess | None = field(default=None)

    def start(self) -> None:
        """Starts the server; must be called from the main thread, whose end the server does not outlive."""
        self.process = ServerProcess(self.config.launch(self.ports), self.log)

    def mend(self) -> bool:
        """Starts the server again if it has ended; ``True`` if it had."""
        if self.process is None or self.process.exit_code() is None:
            return False
        self.process.kill()
        self.start()
        return True

    def wait(self) -> None:
        """Waits until the server answers.

        Raises:
            NewnormalError: ``CHAOS_RUN_FAILED`` if it does not in time.
        """
        deadline = time.monotonic() + _START_SECONDS
        while not self.config.is_ready(self.ports):
            self.mend()
            if time.monotonic() > deadline:
                words = self.process.last_words() if self.process else ""
                raise NewnormalError("CHAOS_RUN_FAILED", f"{self.config.name} does not answer: {words}", str(self.log))
            time.sleep(0.2)

    def targets(self) -> list[Target]:
        """All processes of the server."""
        return below(self.process.pid) if self.process else []

    def stop(self, seconds: float = 60.0) -> None:
        """Asks the server to stop, and ends it if it does not in time."""
        if self.process is None:
            return
        self.process.terminate()
        process, self.process = self.process, None
        until(lambda: process.exit_code() is not None, seconds)
        process.kill()


class Servers:
    """Both servers, and the relay through which the pipeline reaches Kafka; a context manager.

    Args:
        settings: The settings of the run: its state directory and heaps.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self._claims = settings, PortClaims()
        listener = socket.create_server((HOST, 0))
        ports = self._claims.choose(_PREFERRED)
        self.relay = Relay(listener, ports["published"])
        self.relay_port = int(listener.getsockname()[1])
        kafka, elasticsearch = plan(settings, ["kafka", "elasticsearch"])
        assert isinstance(kafka, Kafka)
        logs = settings.state / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        node = {"port": ports.pop("elasticsearch")}
        self.kafka = Server(replace(kafka, published=f"{HOST}:{self.relay_port}"), ports, logs / "kafka.log")
        self.elasticsearch = Server(elasticsearch, node, logs / "elasticsearch.log")

    def __enter__(self) -> Servers:
        try:
            self.relay.__enter__()
            for server in self.both:
                server.start()
            for server in self.both:
                server.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.relay.__exit__(None, None, None)
        for server in self.both:
            server.stop()
        shutil.rmtree(runtime_dir(self.settings.state / "elasticsearch"), ignore_errors=True)

    @property
    def both(self) -> tuple[Server, Server]:
        """Kafka and Elasticsearch."""
        return self.kafka, self.elasticsearch

    @property
    def bootstrap(self) -> str:
        """Kafka's own address, past the relay."""
        return self.kafka.config.address(self.kafka.ports)

    @property
    def url(self) -> str:
        """Elasticsearch's address, with the login of its clients."""
        return self.elasticsearch.config.address(self.elasticsearch.ports)
