"""Faults of the servers, and observations of the pipeline while they last."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from deploy.embedded import services
from deploy.embedded.server_process import signal_group
from deploy.progress import silent
from pipelines.contracts.settings import Settings


@dataclass(frozen=True)
class Servers:
    """Embedded servers that are abused; detached, so that they go on by themselves.

    Args:
        settings: Their state directory.
    """

    settings: Settings

    def up(self) -> None:
        """Starts them and waits until they answer."""
        services.up(self.settings, say=silent)

    def down(self) -> None:
        """Stops both in order."""
        services.down(self.settings)

    def restart(self, absent: float) -> None:
        """Both stop and come back, as after a reboot."""
        self.down()
        time.sleep(absent)
        self.up()

    def hang(self, server: str, absent: float) -> None:
        """A server stands still, with its connections open."""
        self.freeze(server)
        time.sleep(absent)
        self.thaw(server)

    def freeze(self, *names: str) -> None:
        """Servers stand still."""
        for name in names:
            signal_group(self._pid(name), signal.SIGSTOP)

    def thaw(self, *names: str) -> None:
        """They go on."""
        for name in names:
            signal_group(self._pid(name), signal.SIGCONT)

    def kill(self, server: str) -> None:
        """A server dies without a word; its supervisor starts it again."""
        os.killpg(self._pid(server), signal.SIGKILL)

    def _pid(self, server: str) -> int:
        running = services.status(self.settings)
        assert running is not None
        return next(each.pid for each in running.servers if each.name == server)


class Silence:
    """The longest time for which a log did not grow, while someone watches."""

    def __init__(self, log: Path) -> None:
        self.log, self.longest = log, 0.0

    @contextmanager
    def watched(self, when: Callable[[], bool]) -> Iterator[None]:
        """Watches for the length of a block; time counts only while ``when`` holds."""
        ended = Event()

        def watch() -> None:
            size, since = -1, time.monotonic()
            while not ended.wait(0.25):
                now = self.log.stat().st_size
                if now != size or not when():
                    size, since = now, time.monotonic()
                self.longest = max(self.longest, time.monotonic() - since)

        thread = Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
