"""The constants of regimes, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.constant import Constant

_HOUR = 3_600_000


@dataclass(frozen=True)
class RegimesConfig:
    """None of it should need to be changed; the detector's ``threshold`` says what is announced, not what is learned.

    Args:
        follow: Weight of the newest value in the mean of the latest values, and of their distance from the hour's mean.
        hour_prior: Visits of an hour at which it is half trusted.
        hour_forget: Share of an hour's visits forgotten a visit, for visits five minutes apart.
        spread_forget: Share of the spread forgotten a value.
        clip: Standard deviations from what is expected that widen the spread at most.
        young: Values of a series before which no regime is told from another.
        trigger: Standard deviations from what is expected beyond which no usual value lies.
        start: Standard deviations from what is expected that open an incident if they come with a jump.
        jump: Standard deviations from the value before that are a jump.
        most: What one window adds to the logarithm of the Bayes factor at most: windows that follow on one another say
            much the same, and a surprise that ends soon is an anomaly.
        least: What one window takes away at most, as a negative number.
        change: Logarithm of the Bayes factor at which a change of state is announced.
        accept: The same at which it is accepted as the new normal.
        cap: It grows no larger than this, so that an incident ends soon after its cause.
        patience: Windows after which an incident that is no change of state is given up: the level is taken as it is.
        settling: Values after an incident or a switch for which what the regime explains is no anomaly, whatever the
            score: the experts have learned something else meanwhile.
        lasting: Windows of an incident from which on what the experts learned in an outage is forgotten when it ends.
        recall: Logarithm of the Bayes factor of a kept regime against the present one at which it is recalled.
        recall_most: What one window adds to that or takes away at most. One that adds so much opens an incident if it
            comes with a jump.
        recall_size: Standard deviations from what is expected from which on that is asked.
        recall_fit: Standard deviations by which the mean of an incident may lie from the recalled regime, beside
            ``tolerance``.
        tolerance: A regime's distance from the present one is known to this share.
        size: A new level differs from what is expected by at least so many of its standard deviations.
        steady: A new level is steady if its latest values lie no further from its mean than this share of its distance
            from the old level.
        pace: Weight of the newest value in the mean of the latest values of an incident.
        dead: A value below this share of what is typical is that of something dead.
        dead_for: Milliseconds for which something dead is not taken for a new normal.
        frozen_for: The same of a value that repeats itself exactly where values used to vary.
        varied: What varies by less than so many of the smallest scales repeats itself without being frozen.
    """

    follow: Annotated[float, Constant("weight", 0.001, 1, "chosen by hand")] = 0.05
    hour_prior: Annotated[float, Constant("visits", 0.1, 100, "chosen by hand", off=1e-06)] = 2.0
    hour_forget: Annotated[float, Constant("share a visit", 0, 0.5, "chosen by hand", off=0)] = 0.02
    spread_forget: Annotated[float, Constant("share a value", 0, 0.5, "chosen by hand", off=0)] = 1 / 500
    clip: Annotated[float, Constant("standard deviations", 1, 100, "chosen by hand", off=1000000.0)] = 4.0
    young: Annotated[int, Constant("values", 1, 10000, "chosen by hand", off=1)] = 30
    trigger: Annotated[float, Constant("standard deviations", 1, 20, "chosen by hand")] = 4.0
    start: Annotated[
        float,
        Constant(
            "standard deviations",
            1,
            20,
            "measured: from 2.5 with a jump, .83 false alarms a series and month (model.md, Kinds)",
        ),
    ] = 3.0
    jump: Annotated[
        float,
        Constant(
            "standard deviations",
            0.5,
            20,
            "measured: 1 where a kept regime explains the value: false alarms +.13, recognised +.01 (model.md, Kinds)",
            off=0,
        ),
    ] = 2.5
    most: Annotated[
        float,
        Constant(
            "nats a window",
            0.01,
            10,
            "with change: what has lasted for 36 windows is taken for something else (model.md, Kinds)",
        ),
    ] = 0.25
    least: Annotated[float, Constant("nats a window", -10, -0.01, "chosen by hand")] = -1.0
    change: Annotated[float, Constant("nats", 1, 100, "see most (model.md, Kinds)")] = 9.0
    accept: Annotated[float, Constant("nats", 1, 100, "chosen by hand, a little more than change")] = 9.5
    cap: Annotated[float, Constant("nats", 1, 100, "chosen by hand, a little more than accept", off=1000000.0)] = 11.0
    patience: Annotated[int, Constant("windows", 2, 10000, "chosen by hand", off=1000000)] = 150
    settling: Annotated[int, Constant("values", 0, 10000, "chosen by hand", off=0)] = 300
    lasting: Annotated[
        int, Constant("windows", 0, 1000, "chosen by hand: of an outage of six windows or more", off=1000000)
    ] = 6
    recall: Annotated[
        float,
        Constant(
            "nats",
            0.5,
            100,
            "measured: 7 or 8: recognised −.02 to −.04, balanced accuracy 0 (model.md, Kinds)",
            off=1000000.0,
        ),
    ] = 5.0
    recall_most: Annotated[float, Constant("nats a window", 0.1, 100, "chosen by hand")] = 2.0
    recall_size: Annotated[float, Constant("standard deviations", 0.5, 20, "chosen by hand")] = 2.5
    recall_fit: Annotated[
        float,
        Constant(
            "standard deviations",
            0.1,
            20,
            "measured: 0.7 or 1: recognised −.06 to −.12; no bound: balanced accuracy −.015 (model.md, Kinds)",
            off=1000000.0,
        ),
    ] = 2.0
    tolerance: Annotated[float, Constant("share", 0, 1, "chosen by hand", off=0)] = 0.1
    size: Annotated[
        float, Constant("standard deviations", 0.5, 20, "measured: from 2.5 the same (model.md, Kinds)", off=0)
    ] = 3.0
    steady: Annotated[float, Constant("share", 0.001, 1, "chosen by hand", off=1000000.0)] = 0.1
    pace: Annotated[float, Constant("weight", 0.01, 1, "chosen by hand")] = 0.15
    dead: Annotated[float, Constant("share", 0, 0.5, "chosen by hand", off=0)] = 0.05
    dead_for: Annotated[
        int, Constant("ms", 0, 1000000000.0, "so that an outage of two hours is no new normal (model.md, Kinds)", off=0)
    ] = 6 * _HOUR
    frozen_for: Annotated[int, Constant("ms", 0, 1000000000.0, "chosen by hand: a day", off=0)] = 24 * _HOUR
    varied: Annotated[float, Constant("smallest scales", 0, 1000, "chosen by hand", off=0)] = 4.0
