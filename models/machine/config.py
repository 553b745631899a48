"""The constants of the model of one machine's metrics together, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from models.config import DetectorConfig
from models.constant import Constant


@dataclass(frozen=True)
class MultivariateConfig:
    """All that is configurable; only ``threshold`` should need to be.

    Args:
        threshold: record_score from which a machine is an anomaly. Changes verdicts, never what is learned.
        half: Evidence, in nats, that scores 50.
        forget: Share of the moments, of the tails and of the history of evidence forgotten per window.
        noise: Variance, in standardised units, that is each metric's own: directions in which the metrics vary less
            than this together are not believed.
        prior: Windows that the belief in uncorrelated metrics is worth.
        tail_scale: Mean of ln(1 + u²) of residuals u before any history.
        tail_strength: Windows that this is worth.
        pace: Weight of the newest window in the evidence.
    """

    threshold: float = DetectorConfig.threshold
    half: Annotated[float, Constant("nats", 1, 100, "chosen by hand")] = 8.0
    forget: Annotated[
        float,
        Constant(
            "share per window",
            0,
            0.5,
            "measured: 1/15000 to 1/2000 changes little on ASD (multivariate.md, Figures)",
            off=0,
        ),
    ] = 1 / 5000
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
    tail_scale: Annotated[float, Constant("nats", 0.01, 10, "chosen by hand")] = 0.3
    tail_strength: Annotated[float, Constant("windows", 0.5, 1000, "chosen by hand")] = 20.0
    pace: Annotated[
        float,
        Constant("weight", 0.01, 1, "measured: 0.2 to 0.3 changes little on ASD (multivariate.md, Figures)", off=1),
    ] = 0.25
