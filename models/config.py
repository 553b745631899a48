"""The constants of the detector, and what each means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DetectorConfig:
    """All that is configurable; none of it but ``threshold`` and ``timezone`` should need to be.

    Args:
        threshold: record_score from which a value is an anomaly. Changes verdicts, never what is learned.
        timezone: IANA name of the zone in which hours of the day are counted.
        warm_up: Values of a series before it is judged; its kind is *learning* until then.
        half: Evidence, in nats, that scores 50.
        band: Share of values expected between lower and upper.
        level_forget: Share of the level's statistics forgotten a step.
        hurry: Share forgotten a step once an unusual level has persisted.
        hour_forget: Share of an hour's statistics forgotten a visit, for visits five minutes apart.
        hour_forget_most: The most of it, for longer steps.
        weight_forget: Share of the experts' log weights forgotten a step.
        calibration_forget: Share of the history of surprise forgotten a step.
        window_pace: Weight of the newest point in the window evidence.
        window_clip: Evidence of one point counts at most this there.
        record_tolerance: Share of the range by which a record must exceed it.
        record_most: Excess of a record counts at most this many ranges.
        record_leak: Share by which the range draws in a step.
        rest: Steps for which repeats are damped.
        damping: Share taken off the evidence of a repeat at first.
        calm: Quiet steps that end an unrest.
        doubt: Point evidence from which a value is learned with less weight.
    """

    threshold: float = 50.0
    timezone: str = "UTC"
    warm_up: int = 10
    half: float = 8.0
    band: float = 0.999
    level_forget: float = 1 / 6000
    hurry: float = 0.02
    hour_forget: float = 0.04
    hour_forget_most: float = 0.1
    weight_forget: float = 0.01
    calibration_forget: float = 1 / 5000
    window_pace: float = 0.03
    window_clip: float = 5.0
    record_tolerance: float = 0.05
    record_most: float = 3.0
    record_leak: float = 1 / 20000
    rest: int = 120
    damping: float = 0.3
    calm: int = 30
    doubt: float = 6.0
