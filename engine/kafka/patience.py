"""Calls that wait for a server, bounded from outside: a library's own timeout is not relied upon.

librdkafka ignores the timeout of `send_offsets_to_transaction` when the group's coordinator went away (its issues 5456
and 5511): the call then never returns. Knows nothing of what is called.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_SLICE_SECONDS = 0.2


class NoAnswerError(Exception):
    """A call did not return in time; its thread is left to itself."""


class StoppedError(Exception):
    """The wait was ended because the process is to stop; what was asked for may or may not have happened."""


def within(seconds: float, call: Callable[[], T], stop: threading.Event, what: str) -> T:
    """The result of ``call``, made in a thread of its own that is left alone when it does not return.

    Args:
        seconds: How long it may take.
        call: Must be safe to abandon.
        stop: Ends the wait early.
        what: Names the call in errors.

    Raises:
        NoAnswerError: It did not return in time.
        StoppedError: ``stop`` was set meanwhile.

    >>> within(1.0, lambda: 2 + 2, threading.Event(), "sum")
    4
    """
    results: list[T] = []
    failures: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, daemon=True, name=what).start()
    deadline = time.monotonic() + seconds
    while not ended.wait(_SLICE_SECONDS):
        if stop.is_set():
            raise StoppedError(what)
        if time.monotonic() > deadline:
            raise NoAnswerError(f"{what} was not answered within {seconds:g} s")
    if failures:
        raise failures[0]
    return results[0]
