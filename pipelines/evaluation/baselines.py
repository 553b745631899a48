"""What a detector must beat: simple scores of the same series. Higher is more anomalous."""

from __future__ import annotations

import numpy as np

from models.arrays import Array

_GAUSSIAN_WINDOW = 6400


def windowed_gaussian(values: Array, window: int = _GAUSSIAN_WINDOW) -> Array:
    """Distance from the mean of the rows before, in their standard deviations: NAB's baseline, without its rounding.

    NAB's own score is the normal probability of that distance, which is 1 in floating point from nine deviations on;
    its order is this one.

    Args:
        values: Shape (n,).
        window: Rows at most that are looked back on, NAB's number.

    >>> float(windowed_gaussian(np.array([1.0, 3.0, 1.0, 3.0, 8.0]))[-1])
    6.0
    """
    count = np.arange(len(values))
    shift = values[0]
    sums = np.concatenate([[0.0], np.cumsum(values - shift)])
    squares = np.concatenate([[0.0], np.cumsum((values - shift) ** 2)])
    first = np.maximum(count - window, 0)
    rows = np.maximum(count - first, 1)
    mean = (sums[count] - sums[first]) / rows
    variance = np.maximum((squares[count] - squares[first]) / rows - mean**2, 1e-12 * (mean**2 + 1e-12))
    away: Array = np.abs(values - shift - mean) / np.sqrt(variance)
    away[0] = 0.0
    return away


def difference(values: Array) -> Array:
    """The size of the step from the row before."""
    return np.abs(np.diff(values, prepend=values[0]))


def pca(train: Array, test: Array, share: float = 0.99) -> Array:
    """Squared residual of the leading principal components, learned once on all of ``train``.

    Args:
        train: Shape (rows, metrics).
        test: Shape (rows, metrics).
        share: Of the variance that the components kept explain.
    """
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    _, size, axes = np.linalg.svd((train - mean) / spread, full_matrices=False)
    kept = int(np.searchsorted(np.cumsum(size**2) / np.sum(size**2), share)) + 1
    away = (test - mean) / spread
    residual: Array = away - away @ axes[:kept].T @ axes[:kept]
    squared: Array = np.sum(residual**2, axis=1)
    return squared


def pca_weighted(train: Array, test: Array) -> Array:
    """Squared distance along all principal components of ``train``, each in its own standard deviation."""
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    _, size, axes = np.linalg.svd((train - mean) / spread, full_matrices=False)
    variance = size**2 / len(train)
    along = (test - mean) / spread @ axes.T
    squared: Array = np.sum(along**2 / np.maximum(variance, 1e-6 * variance[0]), axis=1)
    return squared


def averaged(train: Array, test: Array) -> Array:
    """Mean over the metrics of the squared distance from the mean of ``train``, in its standard deviations."""
    spread = train.std(axis=0)
    away: Array = (test - train.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
    squared: Array = np.mean(away**2, axis=1)
    return squared
