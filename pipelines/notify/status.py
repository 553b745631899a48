"""What the notifying process says of itself in a file of the state directory, for `newnormal status` and `doctor`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from deploy.embedded.server_process import is_same_process
from engine.files import write_whole
from pipelines.contracts.settings import Settings
from pipelines.notify.figures import ChannelFigures

_FILE = "notify.json"


@dataclass(frozen=True)
class NotifierStatus:
    """The notifying process at one moment.

    Attributes:
        pid: Its process id on this machine.
        started: When it started, epoch seconds; distinguishes it from a later process with the same id.
        url: Where its metrics are.
        channels: The figures of its channels.
        untaken: Number of incidents that last, and of which no route tells anybody.
    """

    pid: int
    started: float
    url: str
    channels: tuple[ChannelFigures, ...]
    untaken: int = 0


class StatusFile:
    """Writes the file when something has changed, and removes it at the end.

    Args:
        settings: The settings; they hold the state directory and the namespace.
        url: Where the metrics are.
    """

    def __init__(self, settings: Settings, url: str) -> None:
        self._path, self._url = settings.file(_FILE), url
        self._started = psutil.Process().create_time()
        self._written: NotifierStatus | None = None

    def write(self, channels: Sequence[ChannelFigures], untaken: int = 0) -> None:
        """Writes the figures if they have changed."""
        status = NotifierStatus(os.getpid(), self._started, self._url, tuple(channels), untaken)
        if status == self._written:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, json.dumps(asdict(status)))
        self._written = status

    def remove(self) -> None:
        """Removes the file."""
        self._path.unlink(missing_ok=True)


def notifier(settings: Settings) -> NotifierStatus | None:
    """The notifying process of this machine; ``None`` if none runs."""
    found = _read(settings.file(_FILE))
    return found if found and is_same_process(found.pid, found.started) else None


def _read(path: Path) -> NotifierStatus | None:
    try:
        tree = json.loads(path.read_text())
        channels = tuple(ChannelFigures(**each) for each in tree["channels"])
        return NotifierStatus(
            int(tree["pid"]), float(tree["started"]), str(tree["url"]), channels, int(tree.get("untaken", 0))
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
