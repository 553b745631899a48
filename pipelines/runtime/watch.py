"""A running driver with what people look at: the web console and the terminal's live view."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import structlog

from dashboards.console import Store, create_app, serve
from dashboards.live_view import LiveView
from dashboards.status import PipelineStatus
from engine.spec.errors import NewnormalError
from pipelines.contracts.records.novelty import NEWS_KINDS
from pipelines.runtime.driver import Driver
from pipelines.runtime.processes import announced

log = structlog.get_logger()
_SECOND = 1.0
_BEFORE = 1_000
"""News of before the start from which what is still open is known."""


class Watch:
    """Shows a driver until it is told to end.

    Args:
        driver: Started.
        view: The terminal's live view.
        store: The documents.
    """

    def __init__(self, driver: Driver, view: LiveView, store: Store) -> None:
        self.driver, self.view, self.store = driver, view, store
        self._newest: list[dict[str, Any]] = []
        self._ended = threading.Event()
        threading.Thread(target=self._look, daemon=True, name="newest").start()

    def status(self) -> dict[str, Any]:
        """The pipeline's status for the console."""
        return self._status().to_dict()

    def until(self, done: Callable[[], bool]) -> None:
        """Refreshes the view each second until ``done``; fails when a job fails for good."""
        while not done():
            self.driver.check()
            self.view.update(self._status(), logged=bool(self.driver.servers.away()))
            self.driver.interrupts.wait(_SECOND)

    def drain(self, seconds: float) -> bool:
        """Waits until all that was written has gone through, while the servers answer; returns whether it has."""
        self.driver.quiesce()
        deadline, quiet = time.monotonic() + seconds, 0

        def done() -> bool:
            nonlocal quiet
            quiet = quiet + 1 if self.driver.idle() else 0
            return quiet >= 3 or time.monotonic() > deadline or bool(self.driver.servers.away())

        self.until(done)
        return quiet >= 3

    def close(self) -> None:
        """Asks Elasticsearch no more."""
        self._ended.set()

    def _status(self) -> PipelineStatus:
        return self.driver.status.status(self.driver.lags(), self._newest, self.driver.problems())

    def _look(self) -> None:
        """Asks for the newest novelties, in a thread: an Elasticsearch that hangs does not hold up the jobs' care."""
        seeded = False
        while not self._ended.wait(_SECOND):
            try:
                if not seeded:
                    self.driver.status.seed(self.store.newest(kinds=NEWS_KINDS, limit=_BEFORE))
                    seeded = True
                self._newest = self.store.newest(kinds=NEWS_KINDS, limit=10)
            except NewnormalError:
                self._newest = []


@contextmanager
def watching(driver: Driver) -> Iterator[Watch]:
    """Starts the driver, the console and the live view; stops all of them at the end, within seconds."""
    settings = driver.settings
    store = Store(settings.elasticsearch.url or "", settings.index)
    watch: list[Watch] = []
    console, status = settings.console, lambda: watch[0].status() if watch else {}
    app = create_app(store, status, settings.detector.timezone, listening=console.host, hosts=console.hosts.split(","))
    with driver.interrupts, ExitStack() as stack:
        stack.callback(store.close)
        stack.callback(driver.stop)
        driver.claim()  # a start that is refused opens no console
        server = serve(app, console.host, console.port)
        stack.callback(server.stop)
        log.info("console", url=server.url)
        try:
            with announced(settings, server.url, driver.names), LiveView(server.url) as view:
                watch.append(Watch(driver, view, store))
                driver.start()
                yield watch[0]
        finally:
            log.info("stopping: jobs end with their micro-batch; Ctrl-C again ends at once")
            for each in watch:
                each.close()
