"""Why a query failed, in one line: the root cause's own words, not the plan that Spark prints around them."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

_SLOW_START = ("Python worker failed to connect back", "Timed out while waiting for the Python worker to connect back")
_LONGEST = 300
_PYTHON = "Traceback (most recent call last)"


def reason(query: StreamingQuery) -> str:
    """What ended a query; ``stopped`` if nothing did."""
    failure = query._jsq.exception()
    return _stated([]) if failure.isEmpty() else _stated(_chain(failure.get()))


def slow_start(why: str) -> bool:
    """Whether a reason is only that a Python worker took longer to start than Spark waits, as on a loaded machine.

    >>> slow_start("SparkException: Python worker failed to connect back.")
    True
    """
    return any(words in why for words in _SLOW_START)


def _chain(error: Any) -> list[str]:
    """The text of an exception of the JVM and of each of its causes, the outermost first."""
    texts: list[str] = []
    while error is not None and len(texts) < 50:
        texts.append(f"{error.getClass().getSimpleName()}: {error.getMessage() or ''}")
        error = error.getCause()
    return texts


def _stated(texts: list[str]) -> str:
    r"""The line to show of a chain of causes.

    >>> _stated(["StreamingQueryException: Job aborted\n=== Streaming Query ===\n+- LocalRelation <empty>",
    ...          "SparkException: Python worker failed to connect back.", "SocketTimeoutException: Timed out"])
    'SparkException: Python worker failed to connect back.'
    >>> _stated(["StreamingQueryException: x", "PythonException: \n  Traceback (most recent call last):\n"
    ...          "  File \"a.py\", line 1\nValueError: no such key\n"])
    'ValueError: no such key'
    """
    for text in reversed(texts):
        if _PYTHON in text:
            return _last_words(text)
    causes = [first for text in texts if (first := _first_line(text))]
    if not causes:
        return "stopped"
    telling = [cause for cause in causes if slow_start(cause)]
    return min(telling, key=len, default=causes[-1])[:_LONGEST]


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""


def _last_words(text: str) -> str:
    """The line of the last Python traceback in a text that names the error: the first that is not indented."""
    lines = text[text.rindex(_PYTHON) :].splitlines()[1:]
    named = [line for line in lines if line and not line[0].isspace()]
    return (named or ["stopped"])[0].strip()[:_LONGEST]
