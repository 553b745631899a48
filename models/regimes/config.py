"""The constants of regimes, and what each means."""

from __future__ import annotations

from dataclasses import dataclass

_HOUR = 3_600_000


@dataclass(frozen=True)
class RegimesConfig:
    """None of it should need to be changed; the detector's ``threshold`` says what is announced, not what is learned.

    Args:
        follow: Weight of the newest value in the mean of the latest values, and of their distance from the hour's mean.
        hour_prior: Visits of an hour at which it is half trusted.
        hour_forget: Share of an hour's visits forgotten a visit, for visits five minutes apart.
        spread_forget: Share of the spread forgotten a value.
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
    """

    follow: float = 0.05
    hour_prior: float = 2.0
    hour_forget: float = 0.02
    spread_forget: float = 1 / 500
    young: int = 30
    trigger: float = 4.0
    start: float = 3.0
    jump: float = 2.5
    most: float = 0.25
    least: float = -1.0
    change: float = 9.0
    accept: float = 9.5
    cap: float = 11.0
    patience: int = 150
    settling: int = 300
    lasting: int = 6
    recall: float = 5.0
    recall_most: float = 2.0
    recall_size: float = 2.5
    recall_fit: float = 2.0
    tolerance: float = 0.1
    size: float = 3.0
    steady: float = 0.1
    pace: float = 0.15
    dead: float = 0.05
    dead_for: int = 6 * _HOUR
    frozen_for: int = 24 * _HOUR
