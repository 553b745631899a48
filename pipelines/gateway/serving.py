"""Runs the gateway: makes sure that the topics are there, serves until it is stopped, and finishes what it took."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from engine.kafka.admin import ensure_topics
from engine.spec.duration import duration_ms
from pipelines.contracts import topics
from pipelines.contracts.access_token import access_token
from pipelines.contracts.settings import Settings
from pipelines.gateway.app import create_app
from pipelines.gateway.log_port import opened
from pipelines.gateway.metrics import Metrics
from pipelines.gateway.statsd_port import StatsdPort
from pipelines.gateway.writer import Writer
from pipelines.serving.server import WebServer, listening

_MOST_THREADS = 4
_GRACE_SECONDS = 5
"""Seconds that requests under way get at the end, beyond the time that they may wait for Kafka."""


class Gateway:
    """A gateway that is being served; `close` ends it.

    Args:
        settings: The settings, with the address of Kafka filled in.

    Raises:
        NewnormalError: ``GATEWAY_TOKEN``, ``GATEWAY_TLS``, ``PORT_TAKEN``, ``KAFKA_UNREACHABLE``,
            ``TOPIC_NOT_CREATED``.

    Attributes:
        url: Where it is reached from this machine.
        metrics: Its figures.
    """

    def __init__(self, settings: Settings) -> None:
        limits, kafka = settings.gateway, settings.kafka
        token, bootstrap = access_token(limits), kafka.bootstrap or ""
        written = (topics.RAW_AGENTS, topics.LOGS_AGENTS, topics.TRACES_AGENTS, topics.CHANGES)
        wanted = {settings.topic(name): settings.topic_config(name) for name in written}
        ensure_topics(bootstrap, wanted, kafka.partitions, kafka.replication)
        listener = listening(limits.host, limits.port, "gateway")
        timeout = duration_ms(limits.timeout)
        self._pool = ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1), "gateway")
        self._writer = Writer(bootstrap, timeout, limits.max_in_flight)
        app = create_app(settings, self._writer, token, self._pool)
        self._statsd = StatsdPort(settings, self._writer, app.state.metrics) if limits.statsd_port else None
        self._log_ports = opened(settings, self._writer, app.state.metrics)
        self.metrics: Metrics = app.state.metrics
        self._server = WebServer(app, listener, timeout // 1000 + _GRACE_SECONDS)
        self.url = self._server.url

    def close(self) -> None:
        """Takes no more requests, and returns when those under way are answered."""
        self._server.stop()
        if self._statsd:
            self._statsd.close()
        for each in self._log_ports:
            each.close()
        self._writer.close()
        self._pool.shutdown()


def run(settings: Settings, stopped: threading.Event, ready: Callable[[str], None]) -> None:
    """Serves until an event is set.

    Args:
        settings: As for `Gateway`.
        stopped: The event.
        ready: Called with the address when it answers.
    """
    gateway = Gateway(settings)
    try:
        ready(gateway.url)
        stopped.wait()
    finally:
        gateway.close()
