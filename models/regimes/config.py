"""The constants of regimes, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.constant import Constant

_DAY = 86_400_000


@dataclass(frozen=True)
class RegimesConfig:
    """None of it should need to be changed; the detector's ``threshold`` says what is announced, not what is learned.

    Args:
        follow: Weight of the newest value in the mean of the latest values, and of their distance from the hour's mean.
        spread_forget: Share of the spread forgotten per value.
        trigger: Standard deviations from what is expected beyond which no usual value lies. What lies further away
            widens the spread as if it lay there.
        start: Standard deviations from what is expected that open an incident if they come with a jump. A new level
            lies at least as far from the old one.
        jump: Standard deviations from the value before that are a jump; and from what is expected, from which on it is
            asked whether a kept regime is back.
        most: What one window adds to the logarithm of the Bayes factor at most: windows that follow on one another say
            much the same, and a surprise that ends soon is an anomaly.
        least: What one window takes away at most, as a negative number.
        change: Logarithm of the Bayes factor at which a change of state is announced. It grows no larger, so that an
            incident ends soon after its cause; where it is as large at the next window, the level is the new normal.
        patience: Windows after which an incident that is no change of state is given up: the level is taken as it is.
            For as many a new regime is young: what its reference expects is no anomaly.
        recall: Logarithm of the Bayes factor of a kept regime against the present one at which it is recalled.
        recall_most: What one window adds to that or takes away at most. One that adds so much opens an incident if it
            comes with a jump.
        recall_fit: Standard deviations by which the mean of an incident may lie from the recalled regime, beside
            ``tolerance``.
        habit: A return of a kept regime of which no value was told is news while the returns before it, less what is
            forgotten of them, are fewer than this; then it is what the series does. Three in a row are told. They are
            forgotten over about as many values as a month of minutes has.
        tolerance: Share of the distance between two levels to which it is known: a kept regime may lie so far beside
            where it was, and the latest values of a new level so far from its mean.
        pace: Weight of the newest value in the mean of the latest values of an incident.
        dead: A value below this share of what is typical is that of something dead.
        alike: What ended by return is the same again from this share of its distance on.
        recurs: What was news before is lent evidence for so many returns; a further one is expected.
        remembers: Milliseconds for which it is remembered that something ended by return.
        lends: Power of the remembered evidence, in units of that which scores 50, at which it is lent: 1, all of it; 0,
            as much as scores 50.
        outage: Milliseconds for which something dead, or a value that repeats itself exactly where values used to vary,
            is not taken for a new normal.
    """

    follow: Annotated[float, Constant("weight", 0.001, 1, "chosen by hand")] = 0.05
    spread_forget: Annotated[float, Constant("share per value", 0, 0.5, "chosen by hand", off=0)] = 1 / 500
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
            "nats per window",
            0.01,
            10,
            "with change: what has lasted for 36 windows is taken for something else (model.md, Kinds)",
        ),
    ] = 0.25
    least: Annotated[float, Constant("nats per window", -10, -0.01, "chosen by hand")] = -1.0
    change: Annotated[float, Constant("nats", 1, 100, "see most (model.md, Kinds)")] = 9.0
    patience: Annotated[int, Constant("windows", 2, 10000, "chosen by hand", off=1000000)] = 150
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
    recall_most: Annotated[float, Constant("nats per window", 0.1, 100, "chosen by hand")] = 2.0
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
    habit: Annotated[
        float,
        Constant("times", 0, 1000, "measured: new normals 1.7 a series and month, else 3.7 (model.md)", off=1000.0),
    ] = 2.0
    tolerance: Annotated[float, Constant("share", 0, 1, "chosen by hand", off=0)] = 0.1
    pace: Annotated[float, Constant("weight", 0.01, 1, "chosen by hand")] = 0.15
    dead: Annotated[float, Constant("share", 0, 0.5, "chosen by hand", off=0)] = 0.05
    alike: Annotated[
        float, Constant("share", 0.1, 1, "measured: .67 instead of .8: NAB −0.1, low FP −0.3 (decision 0024)")
    ] = 0.8
    recurs: Annotated[
        float,
        Constant("times", 0, 1000, "as few as are to be told; 4, fading: NAB −1.3 to −3.5 (decision 0024)", off=0),
    ] = 3.0
    remembers: Annotated[
        float,
        Constant("ms", 0, 1e12, "measured: for ever, NAB −24; a day, false alarms +25 (decision 0024)", off=0),
    ] = 10 * 3_600_000.0
    lends: Annotated[float, Constant("1", 0, 1, "measured: 1, web_kpis −.01 to −.08 (decision 0024)")] = 0.1
    outage: Annotated[
        int,
        Constant("ms", 0, 1000000000.0, "so that what is repaired on the next day is no new normal", off=0),
    ] = _DAY
