"""What becomes of values that an agent sends with their frequencies, or in the buckets of a histogram."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

Part = tuple[str, tuple[tuple[str, str], ...], float, str]
"""(what follows the metric's name, labels, value, kind)"""

QUANTILES = (0.5, 0.95, 0.99)
SLOW = 0.95
"""The quantile of a histogram that is a series of its own: ``name.p95``."""


def weighted(pairs: Iterable[tuple[float, float]], counting: str = "count") -> Iterator[Part]:
    """The samples of values that were seen so often since the message before.

    A quantile is the least value that at least that share of the observations do not exceed (the inverse of the
    empirical distribution function, definition 1 of Hyndman and Fan 1996).

    Args:
        pairs: Values and their frequencies.
        counting: The kind of the count and the sum: ``counter`` if the frequencies only grow.

    Raises:
        ValueError: If a value is not finite, or a frequency is negative.
        TypeError: If one of them is no number.

    >>> [(part, label, value) for part, label, value, _ in weighted([(3.0, 1), (1.0, 2), (2.0, 0)])]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('.count', (), 3.0), ('.sum', (), 5.0), ('.min', (), 1.0), ('.max', (), 3.0), ('', (('quantile', '0.5'),), 1.0),
     ('', (('quantile', '0.95'),), 3.0), ('', (('quantile', '0.99'),), 3.0)]
    """
    observed = []
    for value, weight in pairs:
        if isinstance(value, bool) or isinstance(weight, bool) or not (math.isfinite(value) and math.isfinite(weight)):
            raise ValueError("a value or its frequency is no finite number")
        if weight < 0:
            raise ValueError("a frequency is negative")
        if weight:
            observed.append((float(value), float(weight)))
    total = sum(weight for _, weight in observed)
    yield ".count", (), total, counting
    yield ".sum", (), sum(value * weight for value, weight in observed), counting
    if not observed:
        return
    observed.sort()
    yield ".min", (), observed[0][0], "gauge"
    yield ".max", (), observed[-1][0], "gauge"
    ranks, below = iter([(share, share * total) for share in QUANTILES]), 0.0
    share, least = next(ranks)
    for value, weight in observed:
        below += weight
        while below >= least or value == observed[-1][0]:
            yield "", (("quantile", f"{share:g}"),), value, "gauge"
            share, least = next(ranks, (0.0, math.inf))
            if least == math.inf:
                return


def of_interval(
    count: float,
    total: float | None,
    bounds: Sequence[float],
    counts: Sequence[float],
    extremes: tuple[float, float] = (-math.inf, math.inf),
) -> Iterator[Part]:
    """The mean and the 95th percentile of the observations of one interval; nothing if there are none.

    A histogram that counts since its start cannot be read so: what happened in an interval is a difference of two
    messages.

    Args:
        count: The number of observations.
        total: Their sum; ``None`` if it is not known.
        bounds: Upper bounds of all buckets but the last, rising, shape (n,).
        counts: Observations in each bucket, shape (n + 1,); empty if there are no buckets.
        extremes: The least and the greatest observation, as far as they are known.

    >>> [(part, value) for part, _, value, _ in of_interval(20, 5.0, (0.1, 0.5), (10, 8, 2), (0.02, 0.9))]
    [('.mean', 0.25), ('.p95', 0.7)]
    """
    if count <= 0:
        return
    if total is not None and math.isfinite(total):
        yield ".mean", (), total / count, "latency"
    quantile = bucket_quantile(SLOW, bounds, counts, extremes)
    if quantile is not None:
        yield ".p95", (), quantile, "latency"


def bucket_quantile(
    share: float, bounds: Sequence[float], counts: Sequence[float], extremes: tuple[float, float]
) -> float | None:
    """A quantile of observations that are known by their buckets; ``None`` if nothing is in one, or bounds do not rise.

    Within a bucket, observations are taken to be spread evenly, as Prometheus' `histogram_quantile` does. The first
    bucket begins at the least observation, else at 0 if its bound is above 0; the last ends at the greatest, else it
    has no width.

    Args:
        share: Which quantile, from 0 to 1.
        bounds: As for `of_interval`.
        counts: As for `of_interval`.
        extremes: As for `of_interval`.

    >>> bucket_quantile(0.5, (1.0, 2.0), (2, 4, 0), (-math.inf, math.inf))
    1.25
    >>> bucket_quantile(0.99, (1.0, 2.0), (2, 4, 9), (-math.inf, math.inf))
    2.0
    """
    rising = all(one < other for one, other in pairwise(bounds))
    whole = sum(counts)
    if len(counts) != len(bounds) + 1 or not bounds or not rising or whole <= 0:
        return None
    least, most = extremes
    rank, up_to = share * whole, list(accumulate(counts))
    filled = [place for place, within in enumerate(counts) if within]
    place = next((each for each in filled if up_to[each] >= rank), filled[-1])
    first = min(0.0, bounds[0]) if least == -math.inf else least
    lower = bounds[place - 1] if place else first
    upper = bounds[place] if place < len(bounds) else bounds[-1] if most == math.inf else most
    lower, upper = max(lower, least), min(upper, most)
    part = (rank - up_to[place] + counts[place]) / counts[place]
    quantile = lower + (upper - lower) * part if upper > lower else upper
    return quantile if math.isfinite(quantile) else None
