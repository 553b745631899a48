"""Tries rules on the past for the console. Who serves the console passes in what does it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from engine.spec.errors import NewnormalError


class Trials(Protocol):
    """Says what rules would have done. Each method takes some seconds, and a bounded time at most.

    Each raises `NewnormalError` with the reason if it cannot be said.
    """

    def tried(
        self, fields: Mapping[str, object], limits: Mapping[str, str | None], minutes: int | None, days: int
    ) -> dict[str, Any]:
        """What a rule would have removed and added in the last days; arguments as of `Actions.rule`.

        Returns:
            Plain data: ``rule``; ``lines``, the counts in words; ``removed``, ``added``, ``days`` and ``examples``, see
            docs/rules.md.
        """

    def proposed(self, days: int) -> dict[str, Any]:
        """What the labels of the last days propose: ``proposals``, ``false_alarms``, ``true_alarms``, ``complete``."""


class OneAtATime:
    """Lets one trial run at a time, since each reads much.

    Args:
        trials: Makes them.
    """

    def __init__(self, trials: Trials) -> None:
        self._trials, self._lock = trials, threading.Lock()

    @contextmanager
    def alone(self) -> Iterator[Trials]:
        """A context manager: what makes trials, for one.

        Raises:
            NewnormalError: ``TRIAL_BUSY`` if another one runs.
        """
        if not self._lock.acquire(blocking=False):
            what, accepted = "another rule is being tried", "one trial at a time; try again in some seconds"
            raise NewnormalError("TRIAL_BUSY", what, "console", accepted, "the rule was not tried")
        try:
            yield self._trials
        finally:
            self._lock.release()
