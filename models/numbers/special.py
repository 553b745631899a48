"""Special functions of SciPy for kernels: by their C symbols, so that compiled kernels can be kept on disk."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.binding
import numba
import scipy.special
from numba import types
from numba.extending import get_cython_function_address


def _symbol(name: str, arguments: int, typed: str | None = None) -> Callable[..., float]:
    """The function of one name of `scipy.special`.

    Args:
        name: Its name.
        arguments: How many floats it takes.
        typed: Its name in `scipy.special.cython_special`, where that differs.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        plain: Callable[..., float] = getattr(scipy.special, name)
        return plain
    symbol = f"newnormal_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address("scipy.special.cython_special", typed or name))
    external: Callable[..., float] = types.ExternalFunction(symbol, types.float64(*[types.float64] * arguments))
    return external


ndtr = _symbol("ndtr", 1, "__pyx_fuse_1ndtr")
ndtri = _symbol("ndtri", 1)
gammaln = _symbol("gammaln", 1)
betaln = _symbol("betaln", 2)
betainc = _symbol("betainc", 3, "__pyx_fuse_0betainc")
betaincinv = _symbol("betaincinv", 3, "__pyx_fuse_0betaincinv")
