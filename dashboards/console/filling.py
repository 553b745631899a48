"""When a series is full, as the pages of a series, of a machine and of the site say and draw it."""

from __future__ import annotations

import math

from dashboards.console.search import Document
from pipelines.contracts.bounds import Bounds
from pipelines.contracts.explanations.full import ahead


def forecast(state: Document | None, now: int, bounds: Bounds) -> Document | None:
    """The forecast in a state of the detector; ``None`` if it has none.

    Args:
        state: The state, by its JSON names.
        now: The instant from which it is told, epoch milliseconds.
        bounds: The bounds of metrics.

    Returns:
        ``earliest``, ``median`` and ``latest`` (epoch ms; ``None``: perhaps never); ``bound``, the value at which it
        is full (``None`` if that depends on the time); and all of it in ``words``.

    >>> hour = 3_600_000
    >>> state = {"metric": "disk.used_percent", "full_earliest": 3 * hour, "full_median": 5 * hour,
    ...     "full_latest": 9 * hour}
    >>> found = forecast(state, 0, Bounds({}))
    >>> found["words"], found["bound"]
    ('full in 3 to 9 hours (95 %)', 100.0)
    >>> del state["full_latest"]
    >>> forecast(state, 0, Bounds({}))["words"], forecast({"metric": "load"}, 0, Bounds({}))
    ('full in 3 hours or more, perhaps never', None)
    """
    if state is None or (median := state.get("full_median")) is None:
        return None
    earliest, latest = state.get("full_earliest") or median, state.get("full_latest")
    bound = bounds.of(state["metric"])
    fixed = bound is not None and not bound.of_time and math.isfinite(bound.full)
    return {
        "earliest": earliest, "median": median, "latest": latest, "bound": bound.full if bound and fixed else None,
        "words": in_words(max(0, earliest - now), None if latest is None else latest - now),
    }  # fmt: skip


def in_words(earliest: int, latest: int | None) -> str:
    """In how long something is full.

    Args:
        earliest: Milliseconds until then at the earliest.
        latest: At the latest; ``None``: perhaps never.

    >>> in_words(0, 0), in_words(3_600_000, None)
    ('full', 'full in 60 minutes or more, perhaps never')
    """
    if latest is None:
        return f"full {ahead(earliest, None)}, perhaps never"
    return "full" if latest <= 0 else f"full {ahead(earliest, latest)} (95 %)"
