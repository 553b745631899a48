"""The constants of the model of log templates, and what each means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TemplateConfig:
    """All that is configurable; none of it should need to be.

    Args:
        forget: Share of all statistics forgotten a window.
        warm_up: Windows of an entity before it is judged.
        half: Weight of evidence that scores 50.
        weight_unseen: What a nat of evidence counts that is about a template not seen on any entity before.
        calibration_forget: Share of the history of surprise at the mix forgotten a window.
        early: Of a history of n windows at least the share early / n of the arrivals of new templates is forgotten a
            window: that everything is new at first says little of later.
        clip: A count of more than so many times what was expected is learned as that many.
        doubt: Evidence, in nats, from which a window is learned with less weight.
        unrest_pace: Weight of the newest window in the mean of evidence that tells whether the unusual persists.
        unrest_clip: Evidence of one window counts at most this there.
        hurry: Share forgotten a window once the unusual has persisted.
        lost: Evidence, in nats, of windows without any line from which an entity is absent.
        faint: A template with fewer (faded) lines may be dropped from the state.
        present: Weight of the newest window in the mean that is the present rate of a template.
        few: Windows that what is known of an entity's rates is worth once an operator has accepted the present ones.
        trace: Lines of a template that are remembered at least when its present rate is accepted.
    """

    forget: float = 1 / 2000
    warm_up: int = 8
    half: float = 12.5
    weight_unseen: float = 2.0
    calibration_forget: float = 1 / 5000
    early: float = 2.0
    clip: float = 10.0
    doubt: float = 6.0
    unrest_pace: float = 0.06
    unrest_clip: float = 7.0
    hurry: float = 0.05
    lost: float = 20.0
    faint: float = 1e-3
    present: float = 0.3
    few: float = 20.0
    trace: float = 0.1
