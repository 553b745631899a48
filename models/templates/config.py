"""The constants of the model of log templates, and what each means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TemplateConfig:
    """All that is configurable; none of it should need to be.

    Args:
        forget: Share of all statistics forgotten a window.
        warm_up: Windows of an entity before it is judged.
        calibration_forget: Share of the history of surprise at the mix forgotten a window.
        clip: A count of more than so many times what was expected is learned as that many.
        faint: A template with fewer (faded) lines may be dropped from the state.
    """

    forget: float = 1 / 2000
    warm_up: int = 10
    calibration_forget: float = 1 / 5000
    clip: float = 10.0
    faint: float = 1e-3
