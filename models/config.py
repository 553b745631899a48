"""The constants of the detector, and what each means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DetectorConfig:
    """All that is configurable; none of it but ``threshold`` and ``timezone`` should need to be.

    Args:
        threshold: record_score from which a value is an anomaly. Changes verdicts, never what is learned.
        timezone: IANA name of the zone in which hours of the day are counted.
        learning: Values of a series before it is judged; its kind is *learning* until then.
        warm_up: Values until its evidence counts in full.
        half: Weight of evidence that scores 50.
        joined_half: Evidence of a machine, in nats, that scores 50.
        notable: Weight of evidence that begins an unrest, and from which it ranks; below, surprise that lingers does.
        frozen_half: Evidence of exact repeats, in nats, that is told of at a threshold of 50.
        weight_change: What a nat of change evidence counts beside one of point evidence.
        weight_window: The same of window evidence.
        weight_record: The same of record evidence.
        band: Share of values expected between lower and upper.
        level_forget: Share of the level's statistics forgotten a step.
        hurry: Share forgotten a step once an unusual level has persisted.
        hour_forget: Share of an hour's statistics forgotten a visit, for visits five minutes apart.
        hour_forget_most: The most of it, for longer steps.
        weight_forget: Share of the experts' log weights forgotten a step.
        calibration_forget: Share of the history of surprise forgotten a step.
        calibration_tail: Share of that history which counts as its tail.
        calibration_strength: Surprises in the tail that the prior belief in a right model is worth.
        calibration_early: How fast what surprised while a series was being learned is forgotten; see `TailCalibration`.
        change_forget: Share of the statistics of steps forgotten a step.
        grain: Share of the range lived through below which differences mean nothing.
        reach: A value outside the band by more than this many half-widths is learned as if it lay there.
        window_pace: Weight of the newest point in the window evidence.
        window_clip: Evidence of one point counts at most this there.
        record_tolerance: Share of the range by which a record must exceed it to count in full.
        record_most: Excess of a record counts at most this many ranges.
        record_leak: Share by which the range draws in a step.
        rest: Steps for which the strongest evidence is remembered.
        joined_rest: The same of joined verdicts.
        damping: Share taken off evidence that does not exceed it.
        calm: Quiet steps that do not end an unrest yet: one more does.
        doubt: Point evidence from which a value is learned with less weight.
    """

    threshold: float = 50.0
    timezone: str = "UTC"
    learning: int = 8
    warm_up: int = 10
    half: float = 28.0
    joined_half: float = 8.0
    notable: float = 7.5
    frozen_half: float = 13.0
    weight_change: float = 0.6
    weight_window: float = 0.95
    weight_record: float = 2.0
    band: float = 0.999
    level_forget: float = 1 / 4000
    hurry: float = 0.02
    hour_forget: float = 0.0125
    hour_forget_most: float = 0.15
    weight_forget: float = 0.01
    calibration_forget: float = 1 / 6500
    calibration_tail: float = 0.015
    calibration_strength: float = 5.0
    calibration_early: float = 1.2
    change_forget: float = 1 / 8000
    grain: float = 0.003
    reach: float = 2.5
    window_pace: float = 0.035
    window_clip: float = 11.0
    record_tolerance: float = 0.09
    record_most: float = 2.5
    record_leak: float = 1 / 40000
    rest: int = 120
    joined_rest: int = 240
    damping: float = 0.3
    calm: int = 5
    doubt: float = 8.0
