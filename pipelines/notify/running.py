"""The process that tells people: reads the shown version's incidents, and has a thread for each channel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog
from confluent_kafka import KafkaException

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.notify.channels.senders import check
from pipelines.notify.figures import ChannelFigures
from pipelines.notify.heartbeat import Heartbeat, heartbeat_url
from pipelines.notify.memory import Memory
from pipelines.notify.metrics import MetricsServer
from pipelines.notify.reader import Reader, reader_or_none
from pipelines.notify.routing import Routing
from pipelines.notify.status import StatusFile
from pipelines.notify.teller import Teller
from pipelines.versions.promotion import shown_version
from pipelines.versions.registry import Registry

_LOOK = 15.0
"""Seconds between two looks for a promotion, and for a topic that does not exist yet."""

_FORGET = 3_600.0
"""Seconds between two looks for what can be forgotten."""

_HANGS = 60.0
"""The process hangs if it has not looked for incidents for so many seconds."""

log = structlog.get_logger()


class Notifier:
    """Tells the channels until it is closed.

    Args:
        settings: The settings of all versions, with the addresses of the servers filled in.
        version: The version whose incidents are told; ``None``: the one that readers see, also after a promotion.

    Raises:
        NewnormalError: ``NOTIFY_NO_CHANNELS``, ``NOTIFY_SECRET``, ``NOTIFY_UNUSABLE``, ``VERSION_UNKNOWN``,
            ``NOTIFY_TOKEN``, ``PORT_TAKEN``.

    Attributes:
        url: Where the metrics are.
    """

    def __init__(self, settings: Settings, version: str | None = None) -> None:
        names = list(settings.notify.channels)
        if not names:
            what, accepted = "no channel is set", "[notify.channels.NAME], see docs/notifications.md"
            raise NewnormalError("NOTIFY_NO_CHANNELS", what, "notify.channels", accepted, "nothing was started")
        for name in names:
            check(name, settings.notify)
        if version:
            Registry(settings).get(version)
        self._settings, self._fixed = settings, version
        self._memory = Memory(settings.common_folder("notify"), names, Routing.of(settings.notify))
        self._reader: Reader | None = None
        self._looked = self._forgot = float("-inf")
        self._tellers = [Teller(name, settings, self._memory, self._shown) for name in names]
        try:
            self._metrics = MetricsServer(self._figures, settings.notify)
        except NewnormalError:
            self._memory.close()
            raise
        self.url = self._metrics.url
        self._file = StatusFile(settings, self.url)
        self._trouble, self._turned = "incidents are not read yet", time.monotonic()
        beats = heartbeat_url(settings.notify) is not None
        self._heartbeat = Heartbeat(settings.notify, self.trouble) if beats else None

    def run(self, stopped: threading.Event, ready: Callable[[str], None]) -> None:
        """Reads and tells until an event is set.

        Args:
            stopped: The event.
            ready: Called with the name of a version when its incidents were read to their end.
        """
        for teller in self._tellers:
            teller.start()
        if self._heartbeat:
            self._heartbeat.start()
        current = ""
        while not stopped.is_set():
            self._turned = time.monotonic()
            self._file.write(self._figures(), self._untaken())
            try:
                self._look()
                if self._reader is None:
                    stopped.wait(1.0)
                    continue
                self._reader.step(0.2)
                if self._reader.current and current != self._reader.version:
                    current = self._reader.version
                    ready(current)
            except (KafkaException, NewnormalError) as error:
                self._trouble = "incidents cannot be read"
                log.warning("incidents cannot be read; it is tried again", reason=str(error)[:200])
                stopped.wait(1.0)

    def close(self) -> None:
        """Ends telling and reading."""
        if self._heartbeat:
            self._heartbeat.stop()
        for teller in self._tellers:
            teller.stop()
        for teller in self._tellers:
            if teller.is_alive():
                teller.join(12)
        if self._reader:
            self._reader.close()
        self._memory.close()
        self._metrics.close()
        self._file.remove()

    def trouble(self) -> str:
        """Why people may not be told now; empty if all is well."""
        if time.monotonic() > self._turned + _HANGS:
            return "the process hangs"
        if self._trouble or self._shown() is None:
            return self._trouble or "incidents are not read yet"
        if not all(teller.is_alive() for teller in self._tellers):
            return "the thread of a channel has ended"
        failing = all(each.failing_since is not None for each in self._figures())
        return "no channel takes messages" if failing else ""

    def _figures(self) -> list[ChannelFigures]:
        return [teller.figures() for teller in self._tellers]

    def _untaken(self) -> int:
        """How many incidents last that no route takes."""
        shown = self._shown()
        return len(self._memory.untaken(shown[0])) if shown else 0

    def _shown(self) -> tuple[str, str] | None:
        reader = self._reader
        return (reader.topic, reader.version) if reader and reader.current else None

    def _look(self) -> None:
        """Looks for a promotion now and then, and for old incidents to forget."""
        now = time.monotonic()
        if now > self._forgot + _FORGET:
            self._memory.forget(now_ms())
            self._forgot = now
        if now < self._looked + (_LOOK if self._reader else 1.0):
            return
        self._looked = now
        try:
            name = self._fixed or shown_version(self._settings) or "v1"
        except NewnormalError as error:
            if self._reader is None:
                raise
            log.warning("the promoted version is not known", reason=error.what)
            name = self._reader.version
        if self._reader is not None and self._reader.version == name and not self._reader.replaced():
            self._trouble = ""
            return
        fresh = reader_or_none(self._settings.of(Registry(self._settings).get(name).names), self._memory)
        if fresh is None:
            return
        if self._reader is not None:
            if self._reader.version != name:
                log.info("another version is shown now", version=name)
            self._reader.close()
        self._reader, self._trouble = fresh, ""
