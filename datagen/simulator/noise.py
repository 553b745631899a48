"""Random numbers as a pure function of (seed, stream, entity, step), whatever is drawn and in which order.

The generator is counter-based (the finaliser of SplitMix64 over a keyed counter) and vectorised. It makes the output of
the simulator independent of the chunks in which it is computed.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
_GOLDEN, _ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)


def key(seed: int, *names: object) -> int:
    """A 64-bit key of a seed and names; the same in every process.

    >>> key(1, "load") == key(1, "load"), key(1, "load") == key(2, "load")
    (True, False)
    """
    return int.from_bytes(blake2b(repr((seed, *names)).encode(), digest_size=8).digest(), "little")


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


class Noise:
    """Streams of noise of one seed.

    >>> noise = Noise(7)
    >>> whole = noise.normal("a", np.arange(3)[:, None], np.arange(10))
    >>> bool((whole[1:2, 4:] == noise.normal("a", [[1]], np.arange(4, 10))).all())
    True
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def uniform(self, stream: str, a: ArrayLike, b: ArrayLike = 0) -> Floats:
        """Uniform in (0, 1), of the shape of ``a`` and ``b`` broadcast."""
        of_a = np.atleast_1d(np.asarray(a)).astype(np.uint64) * _GOLDEN + np.uint64(key(self._seed, stream))
        of_b = np.atleast_1d(np.asarray(b)).astype(np.uint64) * _ODD
        bits = _mixed(_mixed(of_a) + _mixed(of_b))
        return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def normal(self, stream: str, a: ArrayLike, b: ArrayLike = 0) -> Floats:
        """Standard normal, of the shape of ``a`` and ``b`` broadcast."""
        out: Floats = ndtri(self.uniform(stream, a, b))
        return out

    def smooth(self, stream: str, a: NDArray[np.int64], steps: NDArray[np.int64], period: int) -> Floats:
        """Standard normal at each step, correlated over about ``period`` steps.

        Args:
            stream: Name of the stream.
            a: Entities, shape (n, 1).
            steps: Consecutive steps, shape (t,).
            period: Distance in steps of the independent normals that are interpolated between.

        Returns:
            Shape (n, t).
        """
        knots = np.arange(steps[0] // period, steps[-1] // period + 2)
        values = self.normal(stream, a, knots)
        at, rest = steps // period - knots[0], (steps % period) / period
        weight = rest * rest * (3 - 2 * rest)
        out: Floats = values[:, at] * (1 - weight) + values[:, at + 1] * weight
        out /= np.sqrt(weight**2 + (1 - weight) ** 2)
        return out
