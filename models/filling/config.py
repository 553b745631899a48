"""The constants of the forecast of when something is full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.constant import Constant


@dataclass(frozen=True)
class FillingConfig:
    """None of it should need to be changed.

    Args:
        prior: How many observed rises the rise expected from the next shorter clock counts as.
        growth: How much larger the variance of a rise is over three times the time, before that was observed.
        forget: Share of the observed rises that is forgotten with each.
        sharpness: Power of its error by which an expert counts less.
        freedom: Degrees of freedom of a rise of which none was observed.
        change: Error of a slope, as a share of it, for a time that is long beside that for which it was seen.
        quickening: The same for a slope that becomes steeper.
        ahead: A latest time is given only within so many times the time for which the series has been seen.
        lasting: It is given once so many forecasts in a row had one.
        begun: Share of its own length after which a clock begins to observe rises.
        watched: Hours that a series must have been seen before it is said of it that it will be full.
        values: Number of values that must have been seen, likewise.
    """

    prior: Annotated[float, Constant("rises", 0.05, 5, "measured: coverage of `newnormal bench full`")] = 0.6
    growth: Annotated[float, Constant("1", 3, 27, "9: errors of a slope; more, as slopes change (Harvey 1989)")] = 10.0
    forget: Annotated[float, Constant("share per rise", 0, 0.5, "chosen by hand", off=0)] = 1 / 15
    sharpness: Annotated[float, Constant("1", 0, 8, "2: by precision", off=0)] = 2.0
    freedom: Annotated[float, Constant("1", 2.5, 30, "chosen by hand")] = 3.0
    change: Annotated[
        float, Constant("share", 0, 1, "measured: coverage of `newnormal bench full`, slopes that change", off=0)
    ] = 0.25
    quickening: Annotated[
        float, Constant("share", 0, 10, "measured: coverage of `newnormal bench full`, slopes that change", off=0)
    ] = 3.0
    ahead: Annotated[
        float, Constant("share", 0.1, 1000, "measured: coverage of `newnormal bench full`, shapes held back", off=1000)
    ] = 2.0
    lasting: Annotated[float, Constant("forecasts", 1, 100, "a spike is over sooner", off=1)] = 3.0
    begun: Annotated[float, Constant("share", 0.1, 2, "chosen by hand")] = 0.33
    watched: Annotated[float, Constant("hours", 0, 168, "chosen by hand", off=0)] = 6.0
    values: Annotated[float, Constant("values", 5, 1000, "chosen by hand")] = 30.0
