"""A level that an operator accepts is what the experts expect at once, also the one on the logarithmic axis."""

from __future__ import annotations

import numpy as np
import pytest

from models.config import DetectorConfig
from models.experts.base import Lesson, Step
from models.experts.log_level import learn_log_level, new_state, predict_log_level, shift_log_level
from models.families.normal_inverse_gamma import Prior
from models.families.student_t import expand
from models.numbers.arrays import Rows
from models.records import Layout, constants

NOBODY = Prior(0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("offset", [300.0, -60.0])
def test_a_level_on_the_logarithmic_axis_moves_by_the_accepted_offset(offset: float) -> None:
    config = constants(all=DetectorConfig(forget=0.0)).all
    layout = Layout(new_state(0))
    columns = layout.joined(new_state(1))
    level = layout.records(columns)[0]
    step = Step(100.0, 1.0, 1e-6, 0.0, 0, False, 1.0)

    def expected() -> float:
        t = predict_log_level(level, step, NOBODY, NOBODY)
        return expand(t, t.location)

    for _ in range(50):
        learn_log_level(config, level, 100.0, Lesson(100.0, 1.0))
    assert expected() == pytest.approx(100, rel=1e-3)
    shift_log_level(Rows(columns, np.array([0]), ""), np.array([offset]), 20.0)
    assert expected() == pytest.approx(100 + offset, rel=1e-3)
