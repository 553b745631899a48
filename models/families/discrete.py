"""What the families of counts share: a value's own probability counts half in a fair tail.

Source: H. Lancaster, Significance tests in discrete distributions, JASA 56 (1961).
"""

from __future__ import annotations

import math

from models.kernels import kernel

_LN2 = math.log(2.0)


@kernel
def mid_tail(tail: float, log_density: float) -> float:
    """Log of a tail in which a value's own probability counts half; ``tail``: log of that in which it counts whole."""
    part = min(log_density - _LN2 - tail, -_LN2)
    return tail + math.log1p(-math.exp(part))
