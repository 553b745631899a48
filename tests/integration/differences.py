"""What differs between the final verdicts of two runs."""

from __future__ import annotations

import math
from typing import Any


def differences(one: dict[Any, dict[str, Any]], other: dict[Any, dict[str, Any]]) -> list[str]:
    """What differs between two sets of final verdicts; numbers may differ by 1e-9 of their size."""
    found = [f"only in the first: {key}" for key in one.keys() - other.keys()]
    found += [f"only in the second: {key}" for key in other.keys() - one.keys()]
    for key in one.keys() & other.keys():
        found += [f"{key}: {line}" for line in _unlike(one[key], other[key], "")]
    return found


def _unlike(one: Any, other: Any, name: str) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        return [line for k in one.keys() | other.keys() for line in _unlike(one.get(k), other.get(k), f"{name}.{k}")]
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other))
    alike = math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) if numbers else one == other
    # a final verdict is the newest revision; how many there were before it depends on the micro-batches
    return [] if alike or name == ".revision" else [f"{name} {one!r} {other!r}"]
