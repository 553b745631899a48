"""The constants of the model of one machine's metrics together, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.constant import Constant


@dataclass(frozen=True)
class MultivariateConfig:
    """All that is configurable; only ``threshold`` should need to be.

    Args:
        threshold: record_score from which a machine is an anomaly. Changes verdicts, never what is learned.
        warm_up: Windows of a machine before it is judged; its kind is *learning* until then.
        half: Evidence, in nats, that scores 50.
        forget: Share of the moments forgotten a window.
        clip: A standardised value counts at most this.
        noise: Variance, in standardised units, that is each metric's own: directions in which the metrics vary less
            than this together are not believed.
        prior: Windows that the belief in uncorrelated metrics is worth.
        stale: After a gap of more than so many usual steps the window before says nothing.
        refresh: Correlations are inverted anew at least every so many windows.
        tail_forget: Share of what is known of a metric's tail forgotten a window.
        tail_scale: Mean of ln(1 + u²) of residuals u before any history.
        tail_strength: Windows that this is worth.
        pace: Weight of the newest window in the evidence.
        step_pace: Weight of the newest gap in the usual time between two windows.
        distance_share: What is believed beforehand of an anomaly: that it breaks no correlation, and only lies far out.
        calibration_forget: Share of the history of evidence forgotten a window.
    """

    threshold: float = 50.0
    warm_up: Annotated[int, Constant("windows", 1, 1000, "chosen by hand, the same as series.learning", off=1)] = 8
    half: Annotated[float, Constant("nats", 1, 100, "chosen by hand")] = 8.0
    forget: Annotated[
        float,
        Constant(
            "share a window",
            0,
            0.5,
            "measured: 1/15000 to 1/2000 changes little on ASD (multivariate.md, Figures)",
            off=0,
        ),
    ] = 1 / 5000
    clip: Annotated[
        float,
        Constant(
            "standard deviations",
            3,
            1000000.0,
            "measured: 3 or 5 in learning: VUS-PR on ASD .373 or .413 against .450 (multivariate.md, Figures)",
            off=1000000.0,
        ),
    ] = 1000.0
    noise: Annotated[
        float,
        Constant(
            "variance",
            0.001,
            10,
            "measured: 0.1, 0.3, 1, 3: VUS-PR on ASD .607, .615, .571, .433 (multivariate.md, Figures)",
        ),
    ] = 0.3
    prior: Annotated[float, Constant("windows", 0.1, 1000, "chosen by hand")] = 20.0
    stale: Annotated[float, Constant("usual steps", 1, 100, "chosen by hand", off=1000000.0)] = 3.0
    refresh: Annotated[int, Constant("windows", 1, 1000, "chosen by hand", off=1)] = 32
    tail_forget: Annotated[float, Constant("share a window", 0, 0.5, "chosen by hand", off=0)] = 1 / 2000
    tail_scale: Annotated[float, Constant("nats", 0.01, 10, "chosen by hand")] = 0.3
    tail_strength: Annotated[float, Constant("windows", 0.5, 1000, "chosen by hand")] = 20.0
    pace: Annotated[
        float,
        Constant("weight", 0.01, 1, "measured: 0.2 to 0.3 changes little on ASD (multivariate.md, Figures)", off=1),
    ] = 0.25
    step_pace: Annotated[float, Constant("weight", 0.001, 1, "chosen by hand")] = 0.05
    distance_share: Annotated[
        float,
        Constant(
            "chance",
            0.0001,
            0.9999,
            "measured: with equal weight VUS-PR on ASD .477 (multivariate.md, Figures)",
            off=1e-12,
        ),
    ] = 0.05
    calibration_forget: Annotated[float, Constant("share a window", 0, 0.5, "chosen by hand", off=0)] = 1 / 5000
