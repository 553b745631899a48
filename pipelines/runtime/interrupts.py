"""Ctrl-C and SIGTERM while Spark runs: taken at a safe place, as a call to the JVM must not be cut short."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Self

from engine.spark.session import kill_spark

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Takes the signals for the length of a block, in the main thread; elsewhere it does nothing.

    The first one raises `KeyboardInterrupt` at once, or, after `defer`, at the next `check` or `wait`. The second one
    ends the process at once: servers and Spark, which watch their parent, end with it.
    """

    def __init__(self) -> None:
        self._asked, self._deferred = threading.Event(), False
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def defer(self) -> None:
        """From now on a signal waits for `check`; to be called again where a library took the signals for itself."""
        self._deferred = True
        for number in self._before:
            signal.signal(number, self._take)

    def check(self) -> None:
        """Raises `KeyboardInterrupt` if a signal has come."""
        if self._asked.is_set():
            raise KeyboardInterrupt

    def wait(self, seconds: float) -> None:
        """Waits, and raises `KeyboardInterrupt` as soon as a signal comes."""
        self._asked.wait(seconds)
        self.check()

    def _take(self, _signal: int, _frame: FrameType | None) -> None:
        if self._asked.is_set():
            os.write(2, b"ended at once; the next start goes on from the checkpoints\n")
            kill_spark()
            os._exit(130)
        self._asked.set()
        if not self._deferred:
            raise KeyboardInterrupt
