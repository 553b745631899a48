"""A running driver with what people look at: the web console and the terminal's live view."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import structlog

from dashboards.console import Store, create_app, serve
from dashboards.live import LiveView
from dashboards.status import PipelineStatus
from engine.errors import NewnormalError
from pipelines.driver import Driver
from pipelines.processes import announced
from pipelines.records.novelty import NEWS_KINDS

log = structlog.get_logger()
_SECOND = 1.0


class Watch:
    """Shows a driver until it is told to end.

    Args:
        driver: Started.
        view: The terminal's live view.
        store: The documents.
    """

    def __init__(self, driver: Driver, view: LiveView, store: Store) -> None:
        self.driver, self.view, self.store = driver, view, store

    def status(self) -> dict[str, Any]:
        """The pipeline's status for the console."""
        return self._status().to_dict()

    def until(self, done: Callable[[], bool]) -> None:
        """Refreshes the view each second until ``done``; fails when a job fails for good."""
        while not done():
            self.driver.check()
            self.view.update(self._status())
            time.sleep(_SECOND)

    def drain(self, seconds: float = 90.0) -> bool:
        """Waits until all that was written has gone through; returns whether it has."""
        self.driver.quiesce()
        deadline, quiet = time.monotonic() + seconds, 0

        def done() -> bool:
            nonlocal quiet
            quiet = quiet + 1 if self.driver.idle() else 0
            return quiet >= 3 or time.monotonic() > deadline

        self.until(done)
        return quiet >= 3

    def _status(self) -> PipelineStatus:
        return self.driver.board.status(self.driver.lags(), self._newest)

    def _newest(self) -> list[dict[str, Any]]:
        with suppress(NewnormalError):
            return self.store.newest(kinds=NEWS_KINDS, limit=10)
        return []


@contextmanager
def watching(driver: Driver) -> Iterator[Watch]:
    """Starts the driver, the console and the live view; stops all of them at the end."""
    settings = driver.settings
    store = Store(settings.elasticsearch.url or "", settings.index)
    watch: list[Watch] = []
    server = serve(
        create_app(store, lambda: watch[0].status() if watch else {}), settings.console.host, settings.console.port
    )
    log.info("console", url=server.url)
    try:
        with announced(settings, server.url, driver.names), LiveView(server.url) as view:
            driver.start()
            watch.append(Watch(driver, view, store))
            yield watch[0]
    finally:
        log.info("stopping: jobs end with their micro-batch")
        driver.stop()
        server.stop()
        store.close()
