"""The constants of the model of one machine's metrics together, and what each means."""

from __future__ import annotations

from dataclasses import dataclass


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
        pace: Weight of the newest window in the evidence.
        calibration_forget: Share of the history of evidence forgotten a window.
    """

    threshold: float = 50.0
    warm_up: int = 8
    half: float = 8.0
    forget: float = 1 / 5000
    clip: float = 1000.0
    noise: float = 0.3
    prior: float = 20.0
    stale: float = 3.0
    refresh: int = 32
    tail_forget: float = 1 / 2000
    pace: float = 0.25
    calibration_forget: float = 1 / 5000
