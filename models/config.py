"""The constants of the detector, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.constant import Constant


@dataclass(frozen=True)
class DetectorConfig:
    """All that is configurable; none of it but ``threshold`` and ``timezone`` should need to be.

    Args:
        threshold: record_score from which a value is an anomaly, of windows of five minutes and at one false alarm a
            series and month; see `models.series.alarm`. Changes verdicts, never what is learned.
        false_alarms: How many false alarms there may be per series and month.
        timezone: IANA name of the zone in which hours of the day are counted.
        learning: Values of a series, or windows of a machine, before it is judged; its kind is *learning* until then,
            and its evidence counts in proportion.
        half: Weight of evidence that scores 50.
        joined_half: Evidence of a machine, in nats, that scores 50.
        notable: Weight of evidence that begins an unrest, and from which it ranks; below, surprise that lingers does.
        frozen_half: Evidence of exact repeats, in nats, that is reported at a threshold of 50.
        weight_change: What a nat of change evidence counts beside one of point evidence.
        weight_window: The same of window evidence.
        weight_record: The same of record evidence.
        band: Share of values expected between lower and upper.
        forget: Share of what is known of level, steps and the history of surprise that is forgotten per value.
        hour_forget: Share of an hour's statistics forgotten per visit, for visits five minutes apart.
        hour_forget_most: The most of it, for longer steps.
        weight_forget: Share of the experts' log weights forgotten per value.
        calibration_tail: Share of that history which counts as its tail.
        calibration_strength: Surprises in the tail that the prior belief in a right model is worth.
        calibration_early: How fast what surprised while a series was being learned is forgotten; see `TailCalibration`.
        reach: A value outside the band by more than this many half-widths is learned as if it lay there; and a step
            likewise.
        window_pace: Weight of the newest point in the window evidence.
        record_tolerance: Share of the range by which a record must exceed it to count in full.
        record_most: Excess of a record counts at most this many ranges.
        record_leak: Share by which the range draws in a step.
        rest: Steps for which the strongest evidence is remembered.
        joined_rest: The same of joined verdicts.
        damping: Share taken off evidence that does not exceed it.
        calm: So few quiet steps do not end an unrest, one more does; and an outage of so few is not unlearned.
        alarm_clock: Weight of evidence by which e times as many values per month raise the bar of alarms.
        alarm_budget: Weight of evidence by which an e-th of the false alarms raises it.
        far: What departs from the recent median must lie this many standard deviations from what the reference expects.
        recurs: What is expected at its time, as it recurs, is left this share of its evidence.
        doubt: Point evidence counts at most this in the window, and a value of more is learned with less weight.
    """

    threshold: float = 50.0
    false_alarms: float = 1.0
    timezone: str = "UTC"
    learning: Annotated[int, Constant("values", 1, 1000, "so that a series is judged within its first ten windows")] = 8
    half: Annotated[
        float,
        Constant(
            "nats",
            1,
            200,
            "measured: of ordinary noise the strongest window of a month is at 22.6 to 27 (model.md, Figures)",
        ),
    ] = 28.0
    joined_half: Annotated[float, Constant("nats", 1, 100, "chosen by hand, the same as machine.half")] = 8.0
    notable: Annotated[
        float,
        Constant("nats", 0, 100, "measured: with 6 to 10 cloud_monitoring has −.02 to +.02 (model.md, Figures)", off=0),
    ] = 7.5
    frozen_half: Annotated[
        float, Constant("nats", 1, 100, "some 15 repeats where values never repeated (model.md, Kinds)")
    ] = 13.0
    weight_change: Annotated[
        float,
        Constant("1", 0, 10, "measured: of six slow leaks five are reported, without it two (ablation.md)", off=0),
    ] = 0.6
    weight_window: Annotated[
        float, Constant("1", 0, 10, "measured: without it NAB −6.5, false alarms −31 (ablation.md)", off=0)
    ] = 0.95
    weight_record: Annotated[float, Constant("1", 0, 10, "measured: without it NAB −15 (ablation.md)", off=0)] = 2.0
    band: Annotated[float, Constant("share", 0.5, 0.999999, "convention: 0.05 % and 99.95 % quantiles")] = 0.999
    forget: Annotated[
        float, Constant("share per value", 0, 0.5, "chosen by hand, so that a level of years ago has no say", off=0)
    ] = 1 / 6500
    hour_forget: Annotated[
        float,
        Constant(
            "share per visit",
            0,
            0.5,
            "measured: against four days NAB +0.5; flat from .0145 to .008 (model.md, Figures)",
            off=0,
        ),
    ] = 0.0125
    hour_forget_most: Annotated[float, Constant("share per visit", 0, 0.9, "chosen by hand")] = 0.15
    weight_forget: Annotated[
        float, Constant("share per value", 0, 0.5, "a feasibility study on NAB used the same", off=0)
    ] = 0.01
    calibration_tail: Annotated[
        float, Constant("share", 0.001, 0.2, "measured: with the weights of the channels NAB +0.7 (model.md, Figures)")
    ] = 0.015
    calibration_strength: Annotated[float, Constant("values", 0.1, 100, "chosen by hand")] = 5.0
    calibration_early: Annotated[float, Constant("1", 0, 10, "chosen by hand", off=0)] = 1.2
    reach: Annotated[float, Constant("half-widths of the band", 0.5, 100, "chosen by hand", off=1000000.0)] = 2.5
    window_pace: Annotated[float, Constant("weight", 0.001, 1, "a feasibility study on NAB used 0.03")] = 0.035
    record_tolerance: Annotated[
        float,
        Constant(
            "share of the range",
            0.001,
            2,
            "measured: hard tolerance of 8 % NAB −2.7, none −12 (model.md, What did not help)",
            off=1e-06,
        ),
    ] = 0.09
    record_most: Annotated[float, Constant("ranges", 0.01, 100, "chosen by hand", off=1000000.0)] = 2.5
    record_leak: Annotated[float, Constant("share per value", 0, 0.1, "chosen by hand", off=0)] = 1 / 40000
    rest: Annotated[
        int,
        Constant(
            "values", 0, 10000, "measured: against 240 NAB +0.6; 80 to 160 all the same (model.md, Figures)", off=0
        ),
    ] = 120
    joined_rest: Annotated[
        int, Constant("windows", 0, 10000, "that of rest before 120 was measured to be better there", off=0)
    ] = 240
    damping: Annotated[
        float,
        Constant(
            "share",
            0,
            1,
            "chosen by hand; more within 15 values of the strongest: NAB +0.1 (model.md, What did not help)",
            off=0,
        ),
    ] = 0.3
    calm: Annotated[int, Constant("values", 0, 1000, "chosen by hand", off=0)] = 5
    alarm_clock: Annotated[
        float, Constant("nats", 0, 100, "measured on web_kpis, NAB and cloud_monitoring at once (model.md)", off=0)
    ] = 7.0
    alarm_budget: Annotated[
        float, Constant("nats", 0, 100, "measured on web_kpis, NAB and cloud_monitoring at once (model.md)", off=0)
    ] = 8.0
    far: Annotated[
        float,
        Constant("standard deviations", 0, 100, "measured: 5 to 7 all the same on web_kpis and NAB (model.md)", off=0),
    ] = 6.0
    recurs: Annotated[float, Constant("share", 0, 1, "measured: NAB +.4 (model.md)", off=1)] = 0.5
    doubt: Annotated[
        float, Constant("nats", 1, 1000, "measured: as low as notable NAB −0.3 (ablation.md)", off=1000000.0)
    ] = 11.0
