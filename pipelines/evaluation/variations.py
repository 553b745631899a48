"""Random settings around the chosen ones: what a figure is worth that holds for one setting only?"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from models.config import DetectorConfig

SPREAD = 1.5
"""Every constant is multiplied by a factor between 1 / SPREAD and SPREAD, log-uniformly."""

_FIXED = {"threshold", "timezone", "warm_up", "band"}


def variation(config: DetectorConfig, seed: int) -> DetectorConfig:
    """The config with all its constants but the contractual ones changed at random.

    >>> variation(DetectorConfig(), 1) == variation(DetectorConfig(), 1) != variation(DetectorConfig(), 2)
    True
    """
    random = np.random.default_rng(seed)
    changed: dict[str, float] = {}
    for field in fields(config):
        factor = float(np.exp(random.uniform(-np.log(SPREAD), np.log(SPREAD))))
        value = getattr(config, field.name)
        if field.name not in _FIXED and isinstance(value, int | float) and not isinstance(value, bool):
            changed[field.name] = type(value)(value * factor)
    return replace(config, **changed)  # type: ignore[arg-type]
