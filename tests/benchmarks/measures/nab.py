"""The score of the Numenta Anomaly Benchmark (NAB), by its official rules.

Only the earliest detection inside a labelled window counts, and the earlier it is, the more it earns. A detection
outside costs more, the further it lies behind a window. A missed window costs. All files share one threshold, the best
for the profile. A detector that never detects has a score of 0, a perfect one 100.

Source: A. Lavin, S. Ahmad, Evaluating real-time anomaly detection algorithms, ICMLA 2015, and the rules as published
with the benchmark (version 1.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from models.numbers.arrays import Array, Flags, Ints

PROBATION = 0.15
"""Share of the rows of a file, or of its first 5,000 rows, that do not count: the detector learns there."""


@dataclass(frozen=True)
class Profile:
    """The weights of detections, misses and false alarms, as in the benchmark's ``profiles.json``."""

    name: str
    true_positive: float
    false_negative: float
    false_positive: float


@dataclass(frozen=True)
class NabFile:
    """The scores and labels of one file.

    Args:
        scores: The detector's score of each row, shape (n,).
        windows: First and last row of each labelled window, in order.
    """

    scores: Array
    windows: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class NabResult:
    """The result of a detector under a profile.

    Args:
        score: The normalised score: 0 for a detector that never detects, 100 for a perfect one.
        threshold: The best threshold; scores from it on are detections.
        found: Number of windows with a detection.
        false: Number of detections outside windows.
    """

    score: float
    threshold: float
    found: int
    false: int


def evaluate(files: Sequence[NabFile], profile: Profile) -> NabResult:
    """Scores a detector with the best of all thresholds.

    >>> profile = Profile("standard", 1.0, 1.0, 0.11)
    >>> scores = np.zeros(100)
    >>> evaluate([NabFile(scores, [(50, 59)])], profile).score
    0.0
    >>> scores[50] = 1.0
    >>> evaluate([NabFile(scores, [(50, 59)])], profile)
    NabResult(score=100.0, threshold=1.0, found=1, false=0)
    """
    score, cost, window, count = _points(files)
    order = np.argsort(-score, kind="stable")
    score, cost, window = score[order], cost[order], window[order]
    outside = window < 0
    gains = np.where(outside, cost * profile.false_positive, 0.0)
    gains += _gains_inside(np.where(outside, 0.0, cost), window, count, profile)
    earned = -profile.false_negative * count + np.cumsum(gains)
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    best = int(last[np.argmax(earned[last])])
    nothing, perfect = -profile.false_negative * count, profile.true_positive * count
    if earned[best] <= nothing:
        return NabResult(0.0, float("inf"), 0, 0)
    found = len(np.unique(window[: best + 1][~outside[: best + 1]]))
    normalised = 100 * (earned[best] - nothing) / (perfect - nothing)
    return NabResult(float(normalised), float(score[best]), found, int(outside[: best + 1].sum()))


def _gains_inside(worth: Array, window: Ints, count: int, profile: Profile) -> Array:
    """For each point, in order of score, how much it adds to the score of its window, whose best detection counts."""
    gains, rows = np.zeros(len(worth)), np.flatnonzero(window >= 0)
    rows = rows[np.argsort(window[rows], kind="stable")]
    ends = np.searchsorted(window[rows], np.arange(count + 1))
    for first, last in pairwise(ends.tolist()):
        own = rows[first:last]
        best = np.maximum.accumulate(worth[own] * profile.true_positive)
        gains[own] = np.diff(best, prepend=-profile.false_negative)
    return gains


def _points(files: Sequence[NabFile]) -> tuple[Array, Array, Ints, int]:
    """For all rows that count their score, worth and window (-1: outside); and the number of windows."""
    scores, worths, windows, count = [], [], [], 0
    for file in files:
        worth, window = worths_of(len(file.scores), file.windows)
        counts = _counts(len(file.scores))
        window = np.where(window >= 0, window + count, -1)
        scores.append(file.scores[counts])
        worths.append(worth[counts])
        windows.append(window[counts])
        count += len(file.windows)
    # as in the benchmark, a window that lies wholly in probation is ignored
    number = np.concatenate(windows)
    kept = np.unique(number[number >= 0])
    number = np.where(number >= 0, np.searchsorted(kept, number), -1)
    return np.concatenate(scores), np.concatenate(worths), number, len(kept)


def _counts(rows: int) -> Flags:
    return np.arange(rows) >= int(min(PROBATION * rows, PROBATION * 5000))


def worths_of(rows: int, windows: Sequence[tuple[int, int]]) -> tuple[Array, Ints]:
    """For each row the worth of a detection before weights, and the window in which the row lies (-1: none).

    >>> worth, window = worths_of(12, [(4, 7)])
    >>> worth.round(2)
    array([-1.  , -1.  , -1.  , -1.  ,  1.  ,  0.97,  0.86,  0.56, -0.68,
           -0.93, -0.99, -1.  ])
    >>> window
    array([-1, -1, -1, -1,  0,  0,  0,  0, -1, -1, -1, -1])
    """
    worth, number = np.full(rows, -1.0), np.full(rows, -1)
    for index, (first, last) in enumerate(windows):
        width = last - first + 1
        inside = np.arange(first, last + 1)
        worth[inside] = _sigmoid(-(last - inside + 1) / width) / _sigmoid(np.array(-1.0))
        number[inside] = index
        until = windows[index + 1][0] if index + 1 < len(windows) else rows
        behind = np.arange(last + 1, until)
        worth[behind] = _sigmoid((behind - last) / max(width - 1, 1))
    return worth, number


def _sigmoid(position: Array) -> Array:
    """Falls from 1 far before the end of a window to -1 far behind it.

    Args:
        position: Distance behind the end of the window, as a share of its width.
    """
    return np.where(position > 3.0, -1.0, 2 / (1 + np.exp(5 * position)) - 1)
