"""What is known of a metric beforehand: its kind, the model family that settings prescribe, the samples per window."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from models.families.choice import NONE, Family, MetricKind
from models.families.suited import About
from models.numbers.arrays import Ints
from pipelines.contracts.globs import matches

_KINDS = {kind.name.lower(): int(kind) for kind in MetricKind}


def about(frame: pl.DataFrame, family: Mapping[str, str]) -> About:
    """What is known of the metric of each row beforehand.

    Args:
        frame: Columns ``metric``, ``kind`` and ``count`` (samples in the window).
        family: Names of families by glob of the metric; the first glob that matches applies.

    >>> row = {"metric": "errors", "kind": "count", "count": 6}
    >>> about(pl.DataFrame([row, row | {"metric": "cpu", "kind": "gauge"}]), {"c*": "mixture"})
    About(kind=array([3, 0]), family=array([-1,  0]), samples=array([6., 1.]))
    """
    kind: Ints = frame["kind"].replace_strict(_KINDS, default=0, return_dtype=pl.Int64).to_numpy()
    prescribed = np.full(frame.height, NONE, np.int64)
    for glob, name in reversed(list(family.items())):
        prescribed[matches(glob, frame["metric"])] = Family[name.upper()]
    counted = (kind == MetricKind.COUNT) | (prescribed == Family.COUNT)
    samples = np.where(counted, np.maximum(frame["count"].to_numpy(), 1), 1).astype(np.float64)
    return About(kind, prescribed, samples)
