"""Known input: each sample is a function of its series and time, so that the expected output can be computed."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field

from confluent_kafka import Producer

from engine.address import kafka_options

HOSTS, METRICS = 10, 3
STEP, WINDOW = 2_000, 10_000
"""Milliseconds between samples of a series, and of a window of the default settings."""


def value(host: int, metric: int, at: int) -> float:
    """The sample of a series at one time (epoch ms)."""
    return float((at // STEP * 31 + host * 7 + metric * 3) % 101)


def line(host: int, metric: int, at: int) -> bytes:
    """The sample as agents write it."""
    sample = {"@timestamp": at, "host.name": f"h{host}", "metric": f"m{metric}", "value": value(host, metric, at)}
    return json.dumps(sample).encode()


@dataclass
class Feed:
    """Sends samples in order of event time, faster than the clock but never ahead of it; waits while Kafka is away.

    Args:
        bootstrap: Kafka's address, with its login if it wants one.
        topic: Where to.
        begin: Event time of the first sample, a multiple of a window.
        speed: Seconds of event time a second.
    """

    bootstrap: str
    topic: str
    begin: int
    speed: float = 5.0
    reached: int = field(default=0)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._producer = Producer(
            {
                **kafka_options(self.bootstrap),
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "queue.buffering.max.messages": 1_000_000,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 0,
            }
        )
        self.reached = self.begin

    def start(self) -> None:
        """Begins to send."""
        self._thread.start()

    def finish(self) -> int:
        """Ends at a window's end, lets later samples close it; returns that end, once all has arrived."""
        self._stop.set()
        self._thread.join()
        while self.reached % WINDOW:
            self._send(self.reached)
        end = self.reached
        for at in range(end + 4 * WINDOW, end + 6 * WINDOW, STEP):
            self._send(at)
        assert self._producer.flush(120) == 0, "the feed did not arrive"
        return end

    def _run(self) -> None:
        began, first = time.monotonic(), self.begin
        while not self._stop.wait(0.2):
            until = first + int((time.monotonic() - began) * 1000 * self.speed)
            while self.reached < min(until, int(time.time() * 1000) - 10 * WINDOW):
                self._send(self.reached)
            self._producer.poll(0)

    def _send(self, at: int) -> None:
        for host in range(HOSTS):
            for metric in range(METRICS):
                self._producer.produce(self.topic, line(host, metric, at), f"h{host}")
        self.reached = at + STEP
