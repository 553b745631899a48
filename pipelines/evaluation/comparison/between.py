"""Compares two versions of a running pipeline: reads their settings, their verdicts and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.evaluation.comparison import reading
from pipelines.evaluation.comparison.comparison import Comparison, compare
from pipelines.evaluation.comparison.messages import listeners
from pipelines.versions.registry import Registry


def between(
    names: tuple[str, str],
    settings: Settings,
    overrides: dict[str, Any],
    labels: Sequence[Path] = (),
    bounds: tuple[int | None, int | None] = (None, None),
    *,
    indices: bool = False,
) -> tuple[Comparison, int]:
    """Compares two versions.

    Args:
        names: The names of both.
        settings: The settings, with the servers' addresses filled in.
        overrides: The values of the command line by dotted name, from which `settings` were loaded.
        labels: Files of labels, as `newnormal evaluate` reads them; empty: the topics of labels and ground truth.
        bounds: No window is compared that begins before the first, or ends after the second, epoch milliseconds.
        indices: True if verdicts are read from the indices of the versions, not from their topics.

    Returns:
        The comparison, and the number of messages that could not be read.

    Raises:
        NewnormalError: ``USAGE_INVALID`` for a version and itself; ``VERSION_UNKNOWN``; as `reading.judged_by` and
            `reading.spans`.
    """
    if names[0] == names[1]:
        what = f"{names[0]} would be compared with itself"
        raise NewnormalError("USAGE_INVALID", what, "newnormal compare", "two versions", "nothing was compared")
    addresses = {"kafka.bootstrap": settings.kafka.bootstrap, "elasticsearch.url": settings.elasticsearch.url}
    registry, sides, unreadable = Registry(settings), [], 0
    for version in [registry.get(name) for name in names]:
        side, bad = reading.judged_by(version, version.load_as_run(**overrides | addresses), indices=indices)
        sides.append(side)
        unreadable += bad
    spans, bad = reading.spans(settings, labels, [side.verdicts for side in sides])
    return compare(sides[0], sides[1], spans, *bounds, listeners(settings.notify)), unreadable + bad
