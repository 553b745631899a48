"""The load that a plan is made for: what arrives, how it is cut into windows, what is stored and for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.spec.duration import duration_ms
from engine.spec.errors import NewnormalError

_MOST = 1e12
EMITS = ("all", "context", "novel")


def number(text: str | float, option: str, least: float = 0.0, most: float = _MOST) -> float:
    """Reads a number such as ``1e6``, ``250000`` or ``1_000_000``.

    Args:
        text: The number.
        option: Name of the option, for the message of an error.
        least: Smallest number that is accepted.
        most: Largest number that is accepted.

    Raises:
        NewnormalError: ``PLAN_INVALID``, which names the option.

    >>> number("1e6", "--events"), number("1_000", "--series")
    (1000000.0, 1000.0)
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        accepted = f"a number from {least:g} to {most:g}, e.g. 1e6"
        raise NewnormalError("PLAN_INVALID", f"{text!r} cannot be used", option, accepted, "nothing was planned")
    return value


def whole(text: str | float, option: str, least: int, most: int) -> int:
    """Reads a whole number, also in the form ``1e3``.

    Raises:
        NewnormalError: ``PLAN_INVALID``, which names the option.
    """
    found = number(text, option, least, most)
    if found != int(found):
        accepted = f"a whole number from {least} to {most}"
        raise NewnormalError("PLAN_INVALID", f"{text!r} cannot be used", option, accepted, "nothing was planned")
    return int(found)


def length(text: str, option: str) -> int:
    """Reads a duration above 0, as the settings do; returns milliseconds.

    Raises:
        NewnormalError: ``DURATION_INVALID`` or ``PLAN_INVALID``, which name the option.
    """
    ms = duration_ms(text, option)
    if ms <= 0:
        raise NewnormalError(
            "PLAN_INVALID", f"{text!r} is no length", option, "e.g. 10s, 5m, 7d", "nothing was planned"
        )
    return ms


@dataclass(frozen=True)
class Load:
    """What a site sends, and what is kept of it.

    Args:
        events: Samples per second, over all series.
        series: Number of series.
        window_ms: Length of a feature window, milliseconds.
        retention_ms: How long Kafka keeps messages, milliseconds.
        index_retention_ms: How long Elasticsearch keeps documents, milliseconds.
        emit: The setting ``detector.emit``.
        replication: Replicas of each topic.
        lateness_ms: The setting ``window.allowed_lateness``, milliseconds.
        context_before: The setting ``detector.context_before``, windows.
        metrics: Series of a machine, on average.
        stored: Share of the verdicts that is written with ``context`` or ``novel``; ``None``: that which was measured.
        lines: Log lines per second.
        spans: Spans of traces per second.
    """

    events: float
    series: float
    window_ms: int = 10_000
    retention_ms: int = 7 * 86_400_000
    index_retention_ms: int = 30 * 86_400_000
    emit: str = "context"
    replication: int = 1
    lateness_ms: int = 600_000
    context_before: int = 60
    metrics: float = 10.0
    stored: float | None = None
    lines: float = 0.0
    spans: float = 0.0

    @property
    def machines(self) -> float:
        """Machines that send."""
        return self.series / self.metrics

    @property
    def windows(self) -> float:
        """Windows with at least one sample, a second: one a series and window, but not more than there are samples."""
        return min(self.events, self.series * 1_000 / self.window_ms)

    @property
    def verdicts(self) -> float:
        """Verdicts per second: one a window, and one a machine for all its metrics together."""
        return self.windows * (1 + 1 / self.metrics)

    @property
    def judged_series(self) -> float:
        """Series whose verdicts the detector knows: those that are sent, and one a machine."""
        return self.series * (1 + 1 / self.metrics)
