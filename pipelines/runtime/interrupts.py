"""Handles Ctrl-C and SIGTERM while Spark runs: only at safe places, as a call to the JVM must not be interrupted."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Self

from engine.spark.session import kill_spark

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """A context manager that handles the signals in the main thread; in other threads it does nothing.

    The first signal raises `KeyboardInterrupt`, once: now, or, after a call of `defer`, at the next `check` or `wait`.
    The second signal ends the process at once; the servers and Spark watch their parent process and end with it.
    """

    def __init__(self) -> None:
        self._asked, self._deferred = False, False
        self._waiting = threading.Event()
        """Set from a signal until it has been raised."""
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def defer(self) -> None:
        """From now on a signal has its effect at the next `check` or `wait`.

        Must be called again after a library has installed signal handlers of its own.
        """
        self._deferred = True
        for number in self._before:
            signal.signal(number, self._take)

    def check(self) -> None:
        """Raises `KeyboardInterrupt` if a signal has arrived, and has not been raised before."""
        if self._waiting.is_set():
            self._waiting.clear()
            raise KeyboardInterrupt

    def wait(self, seconds: float) -> None:
        """Waits for some seconds; raises `KeyboardInterrupt` as soon as a signal arrives."""
        self._waiting.wait(seconds)
        self.check()

    def _take(self, _signal: int, _frame: FrameType | None) -> None:
        if self._asked:
            os.write(2, b"ended at once; the next start continues from the checkpoints\n")
            kill_spark()
            os._exit(130)
        self._asked = True
        if not self._deferred:
            raise KeyboardInterrupt
        self._waiting.set()
