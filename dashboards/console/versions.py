"""The versions of the chain, and comparisons of two of them, which take too long for the answer to one request."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from engine.clock import now_ms
from engine.spec.errors import NewnormalError

log = structlog.get_logger()

KEPT = 4
"""How many comparisons are kept, the newest ones."""


class Versions(Protocol):
    """Lists versions and compares them. Who serves the console passes it in."""

    def listed(self) -> list[dict[str, Any]]:
        """The versions, the oldest first, each with ``name``, ``base``, ``settings``, ``created`` and ``shown``.

        Raises:
            NewnormalError: If they cannot be read.
        """

    def compared(self, first: str, second: str) -> dict[str, Any]:
        """Compares two versions; may take minutes.

        Args:
            first: Name of a version.
            second: Name of another one.

        Returns:
            Plain data: ``versions``, ``at``, ``headline``, ``sentences``, ``outcomes``, ``tables``, ``quality``, and
            ``differences``, each of which has ``versions`` with the ``points`` of both.

        Raises:
            NewnormalError: If they cannot be compared.
        """


@dataclass
class _Work:
    since: int
    done: threading.Event = field(default_factory=threading.Event)
    figures: dict[str, Any] | None = None
    error: NewnormalError | None = None


class Comparisons:
    """Comparisons that are made in a thread, one at a time; the newest ones are kept.

    Args:
        versions: Makes them.
    """

    def __init__(self, versions: Versions) -> None:
        self._versions, self._lock = versions, threading.Lock()
        self._work: dict[tuple[str, str], _Work] = {}

    def begin(self, first: str, second: str) -> None:
        """Begins a comparison, also of versions that were compared before; returns at once.

        Nothing changes if these versions are being compared.

        Raises:
            NewnormalError: ``COMPARISON_BUSY`` if two others are being compared.
        """
        names = (first, second)
        with self._lock:
            busy = next((pair for pair, work in self._work.items() if not work.done.is_set()), None)
            if busy == names:
                return
            if busy:
                what = f"{busy[0]} and {busy[1]} are being compared"
                raise NewnormalError("COMPARISON_BUSY", what, "console", "one comparison at a time", "try again later")
            self._work.pop(names, None)
            work = self._work[names] = _Work(now_ms())
            for old in list(self._work)[:-KEPT]:
                del self._work[old]
        threading.Thread(target=self._compare, args=(names, work), daemon=True, name="comparison").start()

    def state(self, first: str, second: str) -> dict[str, Any]:
        """How far the comparison of two versions is.

        Returns:
            ``state`` (``none``, ``running`` or ``done``), ``since`` (when it began, epoch milliseconds), and ``found``,
            the comparison if it is done.

        Raises:
            NewnormalError: The one with which the comparison has failed.
        """
        with self._lock:
            work = self._work.get((first, second))
        if work is None:
            return {"state": "none", "since": None, "found": None}
        if not work.done.is_set():
            return {"state": "running", "since": work.since, "found": None}
        if work.error is not None:
            raise work.error
        return {"state": "done", "since": work.since, "found": work.figures}

    def _compare(self, names: tuple[str, str], work: _Work) -> None:
        try:
            work.figures = self._versions.compared(*names)
        except NewnormalError as error:
            work.error = error
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            work.error = NewnormalError("COMPARISON_FAILED", what, "console", now="nothing was compared")
            log.exception("versions could not be compared", first=names[0], second=names[1])
        finally:
            work.done.set()
