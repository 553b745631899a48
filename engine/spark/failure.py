"""Says in one line why a query failed: the message of the root cause, without the plan that Spark prints."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from engine.spec.errors import NewnormalError

_SLOW_START = ("Python worker failed to connect back", "Timed out while waiting for the Python worker to connect back")
_NO_PROGRAM = "Cannot run program"
_LONGEST = 300
_PYTHON = "Traceback (most recent call last)"
_OURS = f"{NewnormalError.__module__}.{NewnormalError.__name__}: "
_ACCEPTED = "  accepted: "
_OF_JVM, _CAUSE = "py4j.protocol.Py4JJavaError: ", "Caused by: "


def reason(query: StreamingQuery) -> str:
    """The reason why a query ended; ``stopped`` if it did not fail."""
    failure = query._jsq.exception()
    return _stated([]) if failure.isEmpty() else _stated(_chain(failure.get()))


def stated(error: BaseException) -> str:
    """The reason of an error of Spark in this process, in one line."""
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    return _stated(_chain(origin) if origin is not None else [f"{type(error).__name__}: {error}"])


def slow_start(why: str) -> bool:
    """Whether the only reason is that a Python worker started too slowly for Spark, as on a loaded machine.

    >>> slow_start("SparkException: Python worker failed to connect back.")
    True
    """
    return any(words in why for words in _SLOW_START)


def _chain(error: Any) -> list[str]:
    """The texts of an exception of the JVM and of all its causes, the outermost first."""
    texts: list[str] = []
    while error is not None and len(texts) < 50:
        texts.append(f"{error.getClass().getSimpleName()}: {error.getMessage() or ''}")
        error = error.getCause()
    return texts


def _stated(texts: list[str]) -> str:
    r"""The one line to show for a chain of causes.

    >>> _stated(["StreamingQueryException: Job aborted\n=== Streaming Query ===\n+- LocalRelation <empty>",
    ...          "SparkException: Python worker failed to connect back.", "SocketTimeoutException: Timed out"])
    'SparkException: Python worker failed to connect back.'
    >>> _stated(["StreamingQueryException: x", "PythonException: \n  Traceback (most recent call last):\n"
    ...          "  File \"a.py\", line 1\nValueError: no such key\n"])
    'ValueError: no such key'
    >>> _stated(["PythonException: Traceback (most recent call last):\n  File \"a.py\", line 1\n"
    ...          "engine.spec.errors.NewnormalError: KAFKA_NOT_ALLOWED: not you\n  where: here\n  accepted: an ACL\n"])
    'KAFKA_NOT_ALLOWED: not you; accepted: an ACL'
    >>> _stated(["PythonException: Traceback (most recent call last):\n  File \"a.py\", line 1\n"
    ...          "py4j.protocol.Py4JJavaError: An error occurred while calling o1.getResult.\n: SparkException: x\n"
    ...          "\tat A.b\nCaused by: SparkException: aborted\nCaused by: TimeoutException: silence\n\t... 1 more\n"])
    'TimeoutException: silence'
    >>> _stated(["IOException: Cannot run program \"/no/python\": error=2", "IOException: error=2, No such file"])
    'IOException: Cannot run program "/no/python": error=2'
    """
    for text in reversed(texts):
        if _PYTHON in text:
            return _last_words(text)
    return _most_telling([first for text in texts if (first := _first_line(text))])


def _most_telling(causes: list[str]) -> str:
    """The cause to show of several, of which the last one is the root."""
    telling = [cause for cause in causes if slow_start(cause) or _NO_PROGRAM in cause]
    return min(telling, key=len, default=causes[-1] if causes else "stopped")[:_LONGEST]


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""


def _last_words(text: str) -> str:
    """The line with the error in the last Python traceback of a text: its first line that is not indented.

    An error of ours comes with what would be accepted, which says what to do. An error of the JVM that came through
    Python has causes of its own.
    """
    lines = text[text.rindex(_PYTHON) :].splitlines()[1:]
    named = [line for line in lines if line and not line[0].isspace()]
    message = (named or ["stopped"])[0].strip()
    if message.startswith(_OF_JVM):
        causes = [line.removeprefix(_CAUSE).strip() for line in lines if line.startswith(_CAUSE)]
        return _most_telling(causes or [message])
    if not message.startswith(_OURS):
        return message[:_LONGEST]
    accepted = [line.removeprefix(_ACCEPTED).strip() for line in lines if line.startswith(_ACCEPTED)]
    return "; accepted: ".join([message.removeprefix(_OURS)[:_LONGEST], *accepted[:1]])
