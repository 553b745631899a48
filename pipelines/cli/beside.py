"""Has a function answer the console in a process beside it.

What reads much would take time from the jobs and keep memory in the process of the pipeline; a process beside it, which
has the lowest priority and ends afterwards, does neither.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from engine.spec.errors import NewnormalError

_LOWEST = 19


def beside(
    function: Callable[..., Any],
    *arguments: Any,
    name: str,
    ended: NewnormalError,
    seconds: float | None = None,
    slow: NewnormalError | None = None,
) -> Any:
    """What a function answers in a process of its own.

    Args:
        function: The function, of a module that the process can import.
        arguments: Its arguments, which are pickled as its answer is.
        name: Name of the process.
        ended: The error if the process ends without an answer; its exit code is added to what it says.
        seconds: How long it may take; then the process is ended. ``None``: as long as it takes.
        slow: The error if it has taken that long.

    Raises:
        NewnormalError: What the function raises, ``ended`` or ``slow``.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, function, arguments), daemon=True, name=name)
    process.start()
    there.close()
    try:
        if slow is not None and not here.poll(seconds):
            process.kill()
            raise slow
        answer = here.recv()
    except (EOFError, OSError):
        process.join()
        what = f"{ended.what} with {process.exitcode}"
        raise NewnormalError(ended.code, what, ended.where, ended.accepted, ended.now) from None
    finally:
        here.close()
        process.join()
    if isinstance(answer, NewnormalError):
        raise answer
    return answer


def _answer(answers: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """What the process does: it sends the answer, or the error."""
    os.nice(_LOWEST)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the console, and that ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answers.send(function(*arguments))
    except NewnormalError as error:
        answers.send(error)


def _end_with_parent() -> None:
    """Ends this process when the one that started it has ended, however that came about."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)
