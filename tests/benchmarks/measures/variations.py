"""Random variations of the models' constants, to see whether a figure depends on one particular choice."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from models.config import DetectorConfig

SPREAD = 1.5
"""Each constant is multiplied by a random factor between 1 / SPREAD and SPREAD, log-uniformly."""

_FIXED = {"threshold", "timezone", "band"}


def variation(config: DetectorConfig, seed: int) -> DetectorConfig:
    """The configuration with its constants changed at random, except threshold, time zone and band.

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
