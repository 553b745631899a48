"""What the state view says of a series. Who serves the console passes in the function that asks the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dashboards.console.search import Document
from engine.spec.errors import NewnormalError

AskView = Callable[[str, str], dict[str, Any]]
"""Asks the state view about a machine and a metric.

The answer has ``state``, the last `SeriesState` by its JSON names or ``None``; ``windows``, the last windows, the
oldest first, each with its statistics and, where it is known, the verdict; and ``age``. It raises `NewnormalError` if
no view answers.
"""

NOTHING: dict[str, Any] = {"state": None, "windows": [], "age": None}

_STATISTICS = {"counter": "rate", "latency": "p95"}  # what the detector judges; of all other kinds it is the mean
_SHOWN = ("typical", "lower", "upper", "record_score", "kind")


def asked(view: AskView | None, entity: str, metric: str) -> tuple[dict[str, Any], str]:
    """The view's answer, and why there is none; the reason is empty if the view has answered."""
    if view is None:
        return NOTHING, "this console does not ask a state view"
    try:
        return view(entity, metric), ""
    except NewnormalError as error:
        return NOTHING, error.code


def completed(
    points: list[Document], windows: Sequence[Document], start: int, end: int, metric_kind: str
) -> list[Document]:
    """Stored points of a series, and the view's windows that ended from ``start`` to ``end`` and are not among them.

    Points that summarise several windows are left as they are: the view has only windows that these summarise.
    """
    if any(point["kind"] is None for point in points):
        return points
    known = {point["@timestamp"] for point in points}
    new = [each for each in windows if start <= each["window_end"] <= end and each["window_end"] not in known]
    more = [{"@timestamp": each["window_end"], "actual": _value(each, metric_kind), **_verdict(each)} for each in new]
    return sorted([*points, *more], key=lambda point: point["@timestamp"])


def _value(window: Document, metric_kind: str) -> float | None:
    """The value that the detector judged, or would have judged."""
    judged = window.get(_STATISTICS.get(metric_kind, "mean"))
    value = window.get("actual", judged if judged is not None else window.get("mean"))
    return None if value is None else float(value)


def _verdict(window: Document) -> Document:
    return {name: window.get(name) for name in _SHOWN}
