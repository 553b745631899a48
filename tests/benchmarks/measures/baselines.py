"""Baselines that a detector must beat: simple anomaly scores of a series. A higher score is more anomalous."""

from __future__ import annotations

import numpy as np

from models.numbers.arrays import Array

_GAUSSIAN_WINDOW = 6400


def windowed_gaussian(values: Array, window: int = _GAUSSIAN_WINDOW) -> Array:
    """NAB's baseline: distance from the mean of the preceding rows, in standard deviations of these rows.

    NAB's own score is the normal probability of that distance, which ranks values in the same order, but rounds to 1
    from nine standard deviations on.

    Args:
        values: The values, shape (n,).
        window: The most preceding rows that are used; the default is NAB's.

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
    """The absolute difference from the preceding row."""
    return np.abs(np.diff(values, prepend=values[0]))


def pca(train: Array, test: Array, share: float = 0.99) -> Array:
    """The squared residual from the leading principal components, which are learned once, on all of ``train``.

    Args:
        train: The training part, shape (rows, metrics).
        test: The rows that are scored, shape (rows, metrics).
        share: Share of the variance that the leading components must explain.
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
    """The squared distance along all principal components of ``train``, each in units of its standard deviation."""
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    _, size, axes = np.linalg.svd((train - mean) / spread, full_matrices=False)
    variance = size**2 / len(train)
    along = (test - mean) / spread @ axes.T
    squared: Array = np.sum(along**2 / np.maximum(variance, 1e-6 * variance[0]), axis=1)
    return squared


def averaged(train: Array, test: Array) -> Array:
    """The mean over all metrics of the squared distance from the mean of ``train``, in units of its deviation."""
    spread = train.std(axis=0)
    away: Array = (test - train.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
    squared: Array = np.mean(away**2, axis=1)
    return squared
