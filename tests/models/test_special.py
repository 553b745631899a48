"""Kernels call the functions of SciPy that they name."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from models.kernels import kernel
from models.numbers import special

PLACES = {
    "ndtr": [(-3.0,), (0.5,)],
    "ndtri": [(1e-9,), (0.5,), (0.97,)],
    "gammaln": [(0.3,), (5.0,), (1e6,)],
    "betaln": [(0.5, 7.0), (300.0, 2e4)],
    "betainc": [(0.5, 7.0, 0.1), (300.0, 2e4, 0.01)],
    "betaincinv": [(0.5, 7.0, 0.1), (300.0, 2e4, 0.01)],
}


@kernel
def _ndtr(x: float) -> float:
    return special.ndtr(x)


@kernel
def _ndtri(x: float) -> float:
    return special.ndtri(x)


@kernel
def _gammaln(x: float) -> float:
    return special.gammaln(x)


@kernel
def _betaln(a: float, b: float) -> float:
    return special.betaln(a, b)


@kernel
def _betainc(a: float, b: float, x: float) -> float:
    return special.betainc(a, b, x)


@kernel
def _betaincinv(a: float, b: float, x: float) -> float:
    return special.betaincinv(a, b, x)


@pytest.mark.parametrize("name", PLACES)
def test_a_kernel_gets_what_scipy_says(name: str) -> None:
    for place in PLACES[name]:
        wanted = getattr(scipy.special, name)(*place)
        np.testing.assert_allclose(globals()[f"_{name}"](*place), wanted, rtol=1e-14)
