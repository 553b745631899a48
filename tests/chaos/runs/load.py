"""Sends a scenario to Kafka at a steady pace; while Kafka is away, messages wait in the producer, in their order."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Self

from confluent_kafka import Producer

from engine.spec.errors import NewnormalError
from tests.chaos.runs.scenario import STEP_MS, Outgoing, Scenario

_DELIVERY_SECONDS = 180.0
_CLOSING_GAP, _CLOSING_STEPS = 20, 30


class Load:
    """A thread that sends a scenario; a context manager.

    Args:
        bootstrap: ``host:port`` of Kafka.
        scenario: What is sent.
        speed: Seconds of event time for each second.
    """

    def __init__(self, bootstrap: str, scenario: Scenario, speed: float) -> None:
        self._scenario, self._speed, self._bootstrap = scenario, speed, bootstrap
        self._stopping, self._step, self.sent = threading.Event(), 0, 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, daemon=True, name="load")
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "queue.buffering.max.messages": 1_000_000,
                "reconnect.backoff.max.ms": 1_000,
                "log_level": 0,
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(10)

    def finish(self, window: int) -> int:
        """Ends the load, closes its windows, and waits until Kafka has all messages.

        Args:
            window: Length of the windows, milliseconds.

        Returns:
            The end of the last window that is complete and closed, epoch milliseconds.

        Raises:
            NewnormalError: ``CHAOS_RUN_FAILED`` if Kafka does not accept the messages in time.
        """
        self._stopping.set()
        self._thread.join()
        if self._failure:
            raise self._failure
        while (self._scenario.begin + self._step * STEP_MS) % window:
            self._send(self._scenario.at(self._step))
            self._step += 1
        end = self._scenario.begin + self._step * STEP_MS
        for step in range(self._step + _CLOSING_GAP, self._step + _CLOSING_GAP + _CLOSING_STEPS):
            self._send(self._scenario.closing(step))
        if waiting := self._producer.flush(_DELIVERY_SECONDS):
            what = f"{waiting} messages of the load were not accepted in {_DELIVERY_SECONDS:g} s"
            raise NewnormalError("CHAOS_RUN_FAILED", what, self._bootstrap, "a broker that answers")
        return end

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._failure = error

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stopping.wait(0.1):
            due = int((time.monotonic() - began) * 1000 * self._speed) // STEP_MS
            while self._step < due:
                self._send(self._scenario.at(self._step))
                self._step += 1
            self._producer.poll(0)

    def _send(self, messages: Iterable[Outgoing]) -> None:
        for message in messages:
            self._producer.produce(message.topic, message.value, message.key)
            self.sent += 1
