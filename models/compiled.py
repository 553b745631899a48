"""Compiles the detector's kernels when it is imported, or loads them where they were compiled before.

``python -m models.compiled``, of which `make setup` makes use, compiles them once and deletes those of older sources.
Spark's Python daemon imports this module before it forks its workers: then the first window waits for nothing.
"""

from __future__ import annotations

import numpy as np

from models import kernels
from models.config import DetectorConfig
from models.detector import Detector


def load() -> None:
    """Judges a value of a series of its own."""
    detector, row = Detector(DetectorConfig()), np.zeros(1, np.int64)
    detector.step(detector.new_state(1), row, row, np.ones(1))


load()

if __name__ == "__main__":
    kernels.tidy()
