"""Bounds calls that wait for a server from outside, because the timeout of a library may not work.

librdkafka ignores the timeout of `send_offsets_to_transaction` when the group's coordinator went away (its issues 5456
and 5511): the call then never returns. This module knows nothing of what is called.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_SLICE_SECONDS = 0.2


class NoAnswerError(Exception):
    """A call did not return in time; its thread is left alone."""


class StoppedError(Exception):
    """The wait was ended because the process is to stop; the request may or may not have been carried out."""


def within(seconds: float, call: Callable[[], T], stop: threading.Event, name: str) -> T:
    """The result of ``call``, made in a thread of its own that is left alone when it does not return.

    Args:
        seconds: Longest time to wait.
        call: The call, which must be safe to abandon.
        stop: Event that ends the wait early.
        name: Name of the call in errors.

    Raises:
        NoAnswerError: The call did not return in time.
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

    threading.Thread(target=run, daemon=True, name=name).start()
    deadline = time.monotonic() + seconds
    while not ended.wait(_SLICE_SECONDS):
        if stop.is_set():
            raise StoppedError(name)
        if time.monotonic() > deadline:
            raise NoAnswerError(f"{name} was not answered within {seconds:g} s")
    if failures:
        raise failures[0]
    return results[0]
