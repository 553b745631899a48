"""What the detector believes of series and machines. Who serves the console passes in what answers for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeVar

from dashboards.console.search import Document
from engine.spec.errors import NewnormalError

_T = TypeVar("_T")


class Beliefs(Protocol):
    """Answers from `detector.state` and the windows of all series; a context manager, which reads while it is entered.

    All answers raise `NewnormalError` if there is nobody to ask.
    """

    def __enter__(self) -> Self:
        """Begins to read, where it reads itself."""

    def __exit__(self, *_: object) -> None:
        """Ends that."""

    def series(self, entity: str, metric: str) -> dict[str, Any]:
        """What is believed of one series.

        Returns:
            ``state``, the last `SeriesState` by its JSON names or ``None``; ``windows``, the last windows, the oldest
            first, each with its statistics and the verdict, typical value and band, where these are known; ``age``;
            and ``needed``, how many windows a series has before it is judged.
        """
        ...

    def machine(self, entity: str, most: int) -> list[dict[str, Any]]:
        """The series of a machine: of each ``metric``, ``state``, ``windows`` and ``needed`` as above."""
        ...

    def machines(self, most: int) -> list[str]:
        """Names of machines."""
        ...

    def full(self, most: int) -> list[dict[str, Any]]:
        """The states of the series that will be full, the next first."""
        ...

    def site(self) -> dict[str, Any]:
        """What is known of all machines together.

        Returns:
            ``machines``, how many report; ``learning``, the first of those that are still learned, each with ``name``,
            ``windows`` and ``needed``; ``learning_count``, how many these are; ``last``, end of the newest window.
        """
        ...


NOTHING: dict[str, Any] = {"state": None, "windows": [], "age": None, "needed": 0}

_STATISTICS = {"counter": "rate", "latency": "p95"}  # what the detector judges; of all other kinds it is the mean
_SHOWN = ("typical", "lower", "upper", "record_score", "kind")


def asked(beliefs: Beliefs | None, question: Callable[[Beliefs], _T], otherwise: _T) -> tuple[_T, str]:
    """An answer, and why there is none; the reason is empty if somebody has answered."""
    if beliefs is None:
        return otherwise, "this console does not ask a state view"
    try:
        return question(beliefs), ""
    except NewnormalError as error:
        return otherwise, error.code


def completed(points: list[Document], windows: Sequence[Document], start: int, end: int) -> list[Document]:
    """Stored points of a series, and the view's windows that ended from ``start`` to ``end`` and are not among them.

    Points that summarise several windows are left as they are: the view has only windows that these summarise.
    """
    if any(point["kind"] is None for point in points):
        return points
    known = {point["@timestamp"] for point in points}
    new = [each for each in windows if start <= each["window_end"] <= end and each["window_end"] not in known]
    more = [{"@timestamp": each["window_end"], "actual": judged_value(each), **_verdict(each)} for each in new]
    return sorted([*points, *more], key=lambda point: point["@timestamp"])


def judged_value(window: Document) -> float | None:
    """The value of a window that the detector judged, or would have judged."""
    statistic = window.get(_STATISTICS.get(window.get("metric_kind", "gauge"), "mean"))
    value = window.get("actual", statistic)
    return None if value is None else float(value)


def _verdict(window: Document) -> Document:
    return {name: window.get(name) for name in _SHOWN}
