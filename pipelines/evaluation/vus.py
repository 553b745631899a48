"""How well scores rank labelled rows: the area under the precision-recall curve, and the volume under its surface.

VUS-PR computes that area with labels widened by a buffer, for every buffer length up to the series' period, and
averages the areas. The weights of a buffer fall off, so a detection next to a label is not a full false alarm. Both
measures need no threshold.

Source: J. Paparrizos et al., Volume under the surface: a new accuracy evaluation measure for time-series anomaly
detection, PVLDB 15 (2022); definition and period estimate as in TSB-AD: Q. Liu, J. Paparrizos, The elephant in the
room, NeurIPS 2024 (``version='opt'``, 250 thresholds).
"""

from __future__ import annotations

import numpy as np

from models.numbers.arrays import Array, Flags, Ints

THRESHOLDS = 250
_LAGS, _FIRST_LAG, _LONGEST, _NO_PERIOD = 400, 3, 300, 125


def auc_pr(labels: Array, scores: Array) -> float:
    """Average precision: the precision at each threshold, weighted by the recall that the threshold adds.

    >>> auc_pr(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.1, 0.9, 0.5, 0.3])).__round__(4)
    0.8333
    """
    order = np.argsort(-scores, kind="stable")
    hits, last = np.cumsum(labels[order]), np.append(scores[order][1:] != scores[order][:-1], True)
    precision = hits[last] / (np.flatnonzero(last) + 1)
    return float(np.sum(np.diff(hits[last] / hits[-1], prepend=0.0) * precision))


def vus_pr(labels: Array, scores: Array, window: int, thresholds: int = THRESHOLDS) -> float:
    """The volume under the precision-recall surface.

    Args:
        labels: 0 or 1, at least one of each, shape (n,).
        scores: The scores; a higher one is more anomalous, shape (n,).
        window: Length of the longest buffer, rows; usually the `period` of the series.
        thresholds: Number of points of each curve.

    >>> labels = (np.arange(200) // 10 == 7).astype(float)
    >>> vus_pr(labels, labels, 20) > 0.9 > 0.2 > vus_pr(labels, -labels, 20)
    True
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    edges = ranked[np.linspace(0, len(scores) - 1, thresholds).astype(np.int64)]
    predicted = np.searchsorted(-ranked, -edges, side="right")
    runs = segments(labels)
    areas = [_area(labels, scores, order, edges, predicted, runs, buffer) for buffer in range(window + 1)]
    return float(np.mean(areas))


def _area(
    labels: Array, scores: Array, order: Ints, edges: Array, predicted: Ints, segments: Ints, buffer: int
) -> float:
    weights = _widened(labels, segments, buffer)
    hits = np.cumsum(weights[order])[predicted - 1]
    tops = np.array([scores[first : last + 1].max() for first, last in _joined(segments, buffer // 2, len(labels))])
    existence = (tops[:, None] >= edges).mean(axis=0)
    own = labels.sum()
    extra = np.cumsum(np.where(labels > 0, 0.0, weights)[order])[predicted - 1]
    recall = np.minimum(hits / (own + 0.5 * extra), 1.0) * existence
    return float(np.sum(np.diff(recall, prepend=0.0) * (hits / predicted)))


def segments(labels: Array | Flags) -> Ints:
    """The first and last index of each run of labelled rows, shape (k, 2).

    >>> segments(np.array([0, 1, 1, 0, 1])).tolist()
    [[1, 2], [4, 4]]
    """
    steps = np.diff(np.concatenate([[0], (labels > 0).astype(np.int64), [0]]))
    return np.column_stack([np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1])


def _widened(labels: Array, segments: Ints, buffer: int) -> Array:
    """The labels, widened by half the buffer on either side, with weights √(1 - distance / buffer)."""
    weights = labels.astype(np.float64)
    half = np.arange(1, buffer // 2 + 1)
    flank = np.sqrt(1 - half / max(buffer, 1))
    for first, last in segments:
        right, left = last + half, first - half
        np.add.at(weights, right[right < len(labels)], flank[right < len(labels)])
        np.add.at(weights, left[left >= 0], flank[left >= 0])
    return np.minimum(weights, 1.0)


def _joined(segments: Ints, half: int, length: int) -> list[tuple[int, int]]:
    """The segments, widened by ``half`` rows on either side; segments that touch are joined."""
    joined: list[tuple[int, int]] = []
    for first, last in segments.tolist():
        low, high = max(first - half, 0), min(last + half, length - 1)
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined


def period(values: Array) -> int:
    """The lag of the highest local maximum of the autocorrelation; 125 if there is none between 6 and 303.

    >>> period(np.sin(2 * np.pi * np.arange(1000) / 24))
    24
    """
    values = values[:20_000] - np.mean(values[:20_000])
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(values, size)) ** 2
    correlation = np.fft.irfft(power, size)[_FIRST_LAG : min(_LAGS, len(values) - 1) + 1]
    inner = correlation[1:-1]
    maxima = np.flatnonzero((inner > correlation[:-2]) & (inner > correlation[2:])) + 1
    if not len(maxima):
        return _NO_PERIOD
    best = int(maxima[np.argmax(correlation[maxima])])
    return best + _FIRST_LAG if _FIRST_LAG <= best <= _LONGEST else _NO_PERIOD
