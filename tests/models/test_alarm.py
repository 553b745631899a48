"""How many alarms there are where nothing is wrong, whatever the length of windows; and that the bar is one for all."""

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.verdicts import Kind, SeriesVerdicts

MONTH = 30 * 86_400_000


def _verdicts(step: int, steps: int, series: int, **changed: float) -> SeriesVerdicts:
    rng = np.random.default_rng(9)
    level, noise = rng.uniform(20, 80, series), rng.normal(0, 1, (series, steps))
    values = level[:, None] * (1 + 0.03 * noise) + np.sin(np.arange(steps) * step / 86_400_000 * 2 * np.pi)
    detector, rows = Detector(DetectorConfig(**changed)), np.repeat(np.arange(series), steps)  # type: ignore[arg-type]
    return detector.step(detector.new_state(series), rows, np.tile(np.arange(steps) * step, series), values.ravel())


@pytest.mark.parametrize(("step", "steps"), [(60_000, 14 * 1440), (300_000, 30 * 288), (3_600_000, 2000)])
def test_noise_alarms_at_most_twice_as_often_as_promised_whatever_the_window(step: int, steps: int) -> None:
    series = 20
    kinds = _verdicts(step, steps, series).kind.reshape(series, steps)
    alarms = sum(int((np.diff(np.flatnonzero(row == Kind.ANOMALY.code), prepend=-1000) > 30).sum()) for row in kinds)
    assert alarms / (series * steps * step / MONTH) <= 2.0


def test_fewer_false_alarms_are_fewer_alarms_and_the_scores_stay() -> None:
    many, few = (_verdicts(300_000, 4000, 20, false_alarms=budget) for budget in (8.0, 0.1))
    np.testing.assert_array_equal(many.record_score, few.record_score)
    said = [int((verdicts.kind == Kind.ANOMALY.code).sum()) for verdicts in (many, few)]
    assert said[0] > said[1]
