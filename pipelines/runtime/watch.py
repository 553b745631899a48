"""Runs a driver together with the web console and the terminal's live view."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import structlog

from dashboards.console import Access, Actions, Beliefs, Promises, Store, Trials, Versions, create_app
from dashboards.live_view import LiveView
from dashboards.status import PipelineStatus, Progress
from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.access_token import access_token
from pipelines.contracts.bounds import Bounds
from pipelines.contracts.records.novelty import NEWS_KINDS
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST
from pipelines.jobs.sink.partition import Partition
from pipelines.runtime.driver import Driver
from pipelines.runtime.processes import announced
from pipelines.serving.server import serve

log = structlog.get_logger()
_SECOND = 1.0
_ROWS, _ROWS_OVER = 10, 3
"""How many incidents are shown that go on, and that are over."""
_BEFORE = 1_000
"""How many of the newest novelties from before the start are read, to know which series are still open."""


class Watch:
    """Shows the status of a driver in the live view and to the console.

    Args:
        driver: The driver.
        view: The terminal's live view.
        store: The documents in Elasticsearch.
        progress: Says how far a replay has come, and ``None`` when it has caught up.
    """

    def __init__(
        self, driver: Driver, view: LiveView, store: Store, progress: Callable[[], Progress | None] = lambda: None
    ) -> None:
        self.driver, self.view, self.store, self.progress = driver, view, store, progress
        self._newest: list[dict[str, Any]] = []
        self._incidents: list[dict[str, Any]] | None = [] if "incidents" in driver.names else None
        self._ended = threading.Event()
        threading.Thread(target=self._look, daemon=True, name="newest").start()

    def status(self) -> dict[str, Any]:
        """The status of the pipeline, as JSON for the console."""
        return self._status().to_dict()

    def until(self, done: Callable[[], bool]) -> None:
        """Checks the jobs and refreshes the view once a second, until ``done`` returns True.

        Raises:
            NewnormalError: See `Driver.check`.
            KeyboardInterrupt: On Ctrl-C or SIGTERM.
        """
        while not done():
            self.driver.check()
            self.view.update(self._status(), logged=bool(self.driver.servers.away()))
            self.driver.interrupts.wait(_SECOND)

    def drain(self, seconds: float) -> bool:
        """Waits until the jobs have processed all records; gives up after some seconds, or if a server is away.

        Returns:
            True if all records were processed.
        """
        self.driver.quiesce()
        deadline, quiet = time.monotonic() + seconds, 0

        def done() -> bool:
            nonlocal quiet
            quiet = quiet + 1 if self.driver.idle() else 0
            return quiet >= 3 or time.monotonic() > deadline or bool(self.driver.servers.away())

        self.until(done)
        return quiet >= 3

    def close(self) -> None:
        """Stops reading from Elasticsearch."""
        self._ended.set()

    def _status(self) -> PipelineStatus:
        newest, incidents, problems = self._newest, self._incidents, self.driver.problems()
        return self.driver.status.status(self.driver.lags(), newest, problems, self.progress(), incidents)

    def _look(self) -> None:
        """Reads what is new once a second, in a thread, so that a hanging Elasticsearch delays no job."""
        seeded = False
        while not self._ended.wait(_SECOND):
            try:
                if not seeded:
                    self.driver.status.seed(self.store.newest(kinds=NEWS_KINDS, limit=_BEFORE))
                    seeded = True
                self._newest = self.store.newest(kinds=NEWS_KINDS, limit=10)
                if self._incidents is not None:
                    incidents = self.store.incidents
                    self._incidents = incidents.listed(limit=_ROWS) + incidents.resolved(limit=_ROWS_OVER)
            except NewnormalError:
                self._newest = []


@contextmanager
def watching(
    driver: Driver,
    progress: Callable[[], Progress | None] = lambda: None,
    actions: Callable[[Settings], Actions] | None = None,
    state_view: Callable[[Settings, bool], Beliefs] | None = None,
    versions: Callable[[Settings], Versions] | None = None,
    trials: Callable[[Settings], Trials] | None = None,
) -> Iterator[Watch]:
    """A context manager: starts the driver, the console and the live view, and stops them at the end.

    The console of the first version shows what the alias shows; that of another version shows its own documents.

    Args:
        driver: The driver.
        progress: See `Watch`.
        actions: Gives what writes the messages of operators; ``None``: the console only shows.
        state_view: Gives what the console asks what the detector believes, by the settings and whether the detector
            runs in this process; ``None``: it asks nobody.
        versions: Gives what lists and compares versions; ``None``: the console knows none.
        trials: Gives what tries rules; ``None``: the console tries none.
    """
    settings = driver.settings
    shown, incidents = settings.alias, settings.incident_alias
    if settings.version != FIRST:
        own = (settings.index, settings.incident_index)
        shown, incidents = (",".join(Partition(index, 0).patterns) for index in own)
    store = Store(settings.elasticsearch.url or "", shown, incidents, settings.change_alias)
    watch: list[Watch] = []
    beliefs = state_view(settings, "detector" in driver.names) if state_view else None
    console, status = settings.console, lambda: watch[0].status() if watch else {}
    app = create_app(
        store,
        status,
        settings.detector.timezone,
        console.host,
        console.hosts.split(","),
        actions(settings) if actions else None,
        Access(console.reached, access_token(console), console.user_header, console.proxies.split(",")),
        beliefs,
        versions(settings) if versions else None,
        duration_ms(settings.incidents.quiet),
        Promises.of(settings),
        trials(settings) if trials else None,
        Bounds(settings.detector.bounds),
    )
    with driver.interrupts, ExitStack() as stack:
        stack.callback(store.close)
        stack.callback(driver.stop)
        driver.claim()  # before the console opens: this may refuse the start
        server = serve(app, console.host, console.port)
        stack.callback(server.stop)
        log.info("console", url=server.url)
        try:
            with announced(settings, server.url, driver.names), LiveView(server.url) as view:
                watch.append(Watch(driver, view, store, progress))
                driver.start()
                if beliefs:
                    stack.enter_context(beliefs)  # not before: the jobs come first
                yield watch[0]
        finally:
            log.info("stopping: the jobs complete their micro-batches; press Ctrl-C again to end at once")
            for each in watch:
                each.close()
