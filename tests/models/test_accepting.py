"""A level that an operator accepts is what the experts expect at once, also the one on the logarithmic axis."""

from __future__ import annotations

import numpy as np
import pytest

from models.arrays import Rows
from models.experts.base import Lesson, Step
from models.experts.log_level import LogLevel

ROW, ONE = np.array([0]), np.ones(1)


@pytest.mark.parametrize("offset", [300.0, -60.0])
def test_a_level_on_the_logarithmic_axis_moves_by_the_accepted_offset(offset: float) -> None:
    expert = LogLevel(0.0, 0.0)
    state = expert.new_state(1)
    view = Rows(state, ROW, "")
    for i in range(50):
        step = Step(100 * ONE, ONE, np.array([float(i)]), ROW, 0 * ONE, 1e-6 * ONE)
        expert.learn(view, step, Lesson(step.value, ONE, 0 * ONE), expert.predict(view, step, None)[1])
    assert expert.predict(view, step, None)[0].median()[0] == pytest.approx(100, rel=1e-3)
    expert.shift(view, np.array([offset]), 20.0)
    assert expert.predict(view, step, None)[0].median()[0] == pytest.approx(100 + offset, rel=1e-3)
