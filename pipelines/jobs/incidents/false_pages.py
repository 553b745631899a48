"""The severity from which incidents are written, so that a site has about as many false ones per week as were promised.

Nobody says of an incident whether it came by chance. But what comes by chance is weak: the weight of evidence is
calibrated so that its peaks over a threshold fall off exponentially, by a known scale (`models.series.alarm`), while
most that has a cause lies far beyond. So the weak incidents of the last weeks say how many come by chance, and the
scale says from which weight on so few of them are left as were promised.

Sources: peaks over a threshold as in A. Siffer et al., Anomaly detection in streams with extreme value theory, KDD
2017; the number of those that come by chance from the share of large p-values, as in J. D. Storey, A direct approach
to false discovery rates, J. R. Statist. Soc. B 64 (2002).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from pipelines.jobs.incidents.episode import Episode
from pipelines.jobs.incidents.severity import BARE, has_stopped, points, weight

WEEK = 604_800_000
KEPT = 8 * WEEK
"""Older incidents say nothing any more; they are forgotten by a factor e every `_FADE` before."""

_FADE = 4.0
_SCALE = 0.33
"""Of the weights of incidents that come by chance, beyond that of a bare alarm."""

_WEAK = 0.5
"""Incidents whose weight is exceeded by more than this share of those that come by chance count as weak."""

_PRIOR = 0.1
"""Weeks that the belief is worth that a site keeps the promise by itself."""


@dataclass(frozen=True)
class Lately:
    """The incidents of a site that are over, whether they were written or not; not those of what has stopped.

    Attributes:
        began: Since when the site is watched, epoch milliseconds; ``None``: nothing is known.
        at: When each of them was over for good, epoch milliseconds.
        weights: What each of them weighed, see `pipelines.jobs.incidents.severity`.
    """

    began: int | None = None
    at: Sequence[int] = ()
    weights: Sequence[float] = ()

    def with_those_over(self, groups: Iterable[tuple[int | None, Sequence[Episode]]]) -> Lately:
        """Adds incidents, each with when it is over; not those that last, nor those of what has stopped."""
        past = [(over, own) for over, own in groups if over is not None and own and not has_stopped(own)]
        at, weights = [over for over, _ in past], [weight(own) for _, own in past]
        return Lately(self.began, (*self.at, *at), (*self.weights, *weights))


NOTHING_YET = Lately()
"""Of a site of which nothing is known."""


def least_severity(lately: Lately, at: Sequence[int], promised: float, score: float) -> list[float]:
    """The severity from which an incident is written that was reported at some time.

    Args:
        lately: What is known of the site; only incidents that were over by then count.
        at: Event times, epoch milliseconds.
        promised: False incidents per week.
        score: The least severity, whatever was promised.

    >>> day = 86_400_000
    >>> noisy = Lately(0, [n * day // 4 for n in range(1, 121)], [0.75] * 120)
    >>> [round(level) for level in least_severity(noisy, [0, day, 30 * day], 2.0, 50.0)]
    [50, 61, 63]
    >>> least_severity(noisy, [30 * day], 50.0, 50.0)
    [50.0]
    """
    if lately.began is None:
        return [score] * len(at)
    over, weights = np.asarray(lately.at, np.int64), np.asarray(lately.weights, np.float64)
    weak = over[(weights >= BARE) & (weights <= BARE - _SCALE * log(_WEAK))]
    levels = []
    for now in at:
        ages = (now - weak[(weak <= now) & (weak > now - KEPT)]) / WEEK
        watched = max(now - lately.began, 0) / WEEK
        lasts = _FADE * (1 - exp(-watched / _FADE))
        by_chance = float(np.exp(-ages / _FADE).sum()) / (1 - _WEAK)
        rate = (by_chance + promised * _PRIOR) / (lasts + _PRIOR)
        beyond = BARE + _SCALE * log(rate / promised)
        levels.append(max(score, points(beyond)) if rate > promised else score)
    return levels
