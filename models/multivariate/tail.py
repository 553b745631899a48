"""How rare a standardised residual is, when it is not known how heavy its tail is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Array, Columns, Flags, Rows


@dataclass(frozen=True)
class PowerTail:
    """Residuals u with P(|u| > x) = (1 + x²)^-α: ln(1 + u²) is exponential, of an unknown rate α with a gamma prior.

    The predictive tail is Lomax in ln(1 + u²). The power α is large for a metric that hardly ever leaves what is
    expected of it, and small for one with bursts: each is judged by its own tail.

    Args:
        scale: Mean of ln(1 + u²) before any history.
        strength: Windows that it is worth.
        forget: Share of the history forgotten a window; in the beginning more, so that first mistakes are outgrown.
        most: Of a residual so many times rarer than the mean only that much is learned.

    Sources: power tails from logarithms: B. Hill, A simple general approach to inference about the tail of a
    distribution, Annals of Statistics 3 (1975); Lomax as the gamma mixture of exponentials: K. Lomax, JASA 49 (1954).

    >>> tail = PowerTail(scale=0.3, strength=20.0, forget=1 / 2000)
    >>> state = tail.new_state(1, 1)
    >>> tail.evidence(Rows(state, np.array([0]), ""), np.array([[3.0]])).round(2)  # 20 ln(1 + ln(10) / 6)
    array([[6.5]])
    """

    scale: float
    strength: float
    forget: float
    most: float = 20.0

    def new_state(self, n: int, width: int) -> Columns:
        """The columns for the metrics of n machines."""
        return {
            "shape": np.full((n, width), self.strength),
            "rate": np.full((n, width), self.strength * self.scale),
        }

    def evidence(self, state: Rows, residual: Array) -> Array:
        """-ln of the chance of a residual at least so far off, at least 0; shape (n, w)."""
        return state["shape"] * np.log1p(np.log1p(residual * residual) / state["rate"])

    def learn(self, state: Rows, residual: Array, present: Flags, weight: Array) -> None:
        """Adds the residuals that are there, each counting ``weight`` of shape (n,), to the history."""
        shape, rate = state["shape"], state["rate"]
        counted = present * weight[:, None]
        bent = np.minimum(np.log1p(residual * residual), self.most * rate / shape)
        forget = np.maximum(self.forget, 0.5 / shape)
        state["shape"] = shape + counted * (1 + forget * (self.strength - shape))
        state["rate"] = rate + counted * (bent + forget * (self.strength * self.scale - rate))
