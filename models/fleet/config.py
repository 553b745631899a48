"""The constants of machines beside their peers, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.constant import Constant


@dataclass(frozen=True)
class FleetConfig:
    """None of it should need to be changed.

    Args:
        peers: So many other machines of its role, all known, must send the metric in the same window.
        known: Windows with peers of a series before it is judged, and before it says something of others.
        small: Share of the usual size of the metric below which values are compared as they are, above it by ratio.
        pace: Weight of the newest window in the distance that is judged.
        clip: Standard deviations that one window counts at most.
        forget: Share of what is known of usual distances that is forgotten per window.
        reach: A distance further than so many standard deviations from the usual one is learned as if it lay there.
        strength: Windows of its own that the spread of the others is worth.
        least: Least standard deviation of a distance.
        material: Least change of a distance that is reported.
        others: Excesses that the history of all others together is worth, at the most.
        patience: Windows in a row far from what is usual that are learned as chance; more are a slow change.
        youth: Share of the windows of a series that at most are learned as chance in a row: less of a young one.
        together: Up to this share of a role may leave its usual distance at one time; more are no outliers.
        start: Nats from which a new member is an outlier from its start: it is asked once, by what the others show.
        apart: Least standard deviation of the usual distances of the members of a role.
        accept: Milliseconds after which what is unlike its peers is its normal.
        back: Share of the distance at which it was reported below which it is like its peers again.
    """

    peers: Annotated[int, Constant("machines", 2, 100, "so that one of them that is wrong moves no median far")] = 4
    known: Annotated[int, Constant("windows", 5, 1000, "chosen by hand")] = 30
    small: Annotated[float, Constant("share", 0.0001, 1, "chosen by hand")] = 0.03
    pace: Annotated[float, Constant("weight", 0.005, 1, "see model.md, Machines beside their peers", off=1)] = 0.1
    clip: Annotated[float, Constant("standard deviations", 1, 100, "chosen by hand")] = 10.0
    forget: Annotated[float, Constant("share per window", 0, 0.5, "chosen by hand", off=0)] = 1 / 3000
    reach: Annotated[float, Constant("standard deviations", 0.5, 100, "chosen by hand", off=1000000.0)] = 4.0
    strength: Annotated[float, Constant("windows", 0.1, 1000, "chosen by hand")] = 20.0
    least: Annotated[float, Constant("logarithm", 0.0001, 1, "2 % are of no interest")] = 0.02
    material: Annotated[float, Constant("logarithm", 0, 1, "10 % are of no interest", off=0)] = 0.1
    others: Annotated[float, Constant("excesses", 0, 1000, "chosen by hand", off=0)] = 60.0
    patience: Annotated[int, Constant("windows", 1, 1000, "three times 1 / pace", off=1000000)] = 30
    youth: Annotated[float, Constant("share", 0.001, 10, "chosen by hand: a young series says little", off=10)] = 0.1
    together: Annotated[float, Constant("share", 0, 1, "chosen by hand", off=1)] = 0.25
    start: Annotated[float, Constant("nats", 1, 50, "one metric of 250 of new members by chance")] = 5.5
    apart: Annotated[float, Constant("logarithm", 0.0001, 1, "5 % are of no interest")] = 0.05
    accept: Annotated[int, Constant("ms", 60_000, 31_536_000_000, "a day, as an incident lasts")] = 86_400_000
    back: Annotated[float, Constant("share", 0.01, 0.99, "chosen by hand")] = 0.3
