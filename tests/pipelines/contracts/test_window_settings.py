"""What follows from the settings of windows: their step, and for how long one may change."""

from __future__ import annotations

import pytest

from models.config import DetectorConfig
from models.machine.config import MultivariateConfig
from pipelines.contracts.settings.detection import DetectorSettings
from pipelines.contracts.settings.event_time import WindowSettings

MINUTE = 60_000


@pytest.mark.parametrize(
    ("size", "every", "lateness", "step", "open_for"),
    [
        ("10s", None, "10m", 10_000, 10 * MINUTE + 10_000),
        ("5m", "1m", "10m", MINUTE, 15 * MINUTE),
        ("1h", "1h", "0s", 60 * MINUTE, 60 * MINUTE),
    ],
)
def test_windows_follow_one_another_by_their_slide_and_stay_open_for_their_length_and_the_lateness(
    size: str, every: str | None, lateness: str, step: int, open_for: int
) -> None:
    window = WindowSettings(size=size, every=every, allowed_lateness=lateness)
    assert (window.step_ms, window.open_for_ms) == (step, open_for)
    assert window.step == (every or size)


def test_the_threshold_is_the_same_for_settings_and_models_by_default() -> None:
    assert DetectorSettings().threshold == DetectorConfig().threshold == MultivariateConfig().threshold
