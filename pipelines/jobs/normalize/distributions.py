"""What becomes of values that an agent sends with their frequencies: their count and sum, extremes, and quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

Part = tuple[str, tuple[tuple[str, str], ...], float, str]
"""(what follows the metric's name, labels, value, kind)"""

QUANTILES = (0.5, 0.95, 0.99)


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
    known = []
    for value, weight in pairs:
        if isinstance(value, bool) or isinstance(weight, bool) or not (math.isfinite(value) and math.isfinite(weight)):
            raise ValueError("a value or its frequency is no finite number")
        if weight < 0:
            raise ValueError("a frequency is negative")
        if weight:
            known.append((float(value), float(weight)))
    total = sum(weight for _, weight in known)
    yield ".count", (), total, counting
    yield ".sum", (), sum(value * weight for value, weight in known), counting
    if not known:
        return
    known.sort()
    yield ".min", (), known[0][0], "gauge"
    yield ".max", (), known[-1][0], "gauge"
    wanted, below = iter([(share, share * total) for share in QUANTILES]), 0.0
    share, least = next(wanted)
    for value, weight in known:
        below += weight
        while below >= least or value == known[-1][0]:
            yield "", (("quantile", f"{share:g}"),), value, "gauge"
            share, least = next(wanted, (0.0, math.inf))
            if least == math.inf:
                return
