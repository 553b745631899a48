"""All constants of the models, each with unit, range, source and meaning; benchmarks can change any of them."""

from dataclasses import fields

import numpy as np
import pytest

from models.detector import Detector
from models.model_config import ModelConfig, changed, described

SETTINGS = {"threshold", "false_alarms", "timezone"}
EVERY = list(described())


def test_every_field_of_every_group_but_the_user_s_settings_is_described() -> None:
    config = ModelConfig()
    wanted = {f"{group.name}.{name.name}" for group in fields(config) for name in fields(getattr(config, group.name))}
    assert {one.path for one in EVERY} == {path for path in wanted if path.split(".")[1] not in SETTINGS}
    assert all(one.meaning and one.about.unit and one.about.source for one in EVERY)


def test_every_default_lies_in_its_range() -> None:
    assert [one.path for one in EVERY if not one.about.least <= one.value <= one.about.most] == []


@pytest.mark.parametrize("path", ["series.half", "regimes.trigger", "choice.lead", "feedback.pace", "machine.prior"])
def test_only_the_constant_named_is_changed(path: str) -> None:
    config = changed(ModelConfig(), path, 3.25)
    group, name = path.split(".")
    assert getattr(getattr(config, group), name) == 3.25
    assert changed(config, path, getattr(getattr(ModelConfig(), group), name)) == ModelConfig()


def test_a_changed_constant_changes_what_the_compiled_models_say() -> None:
    row, values = np.array([0]), [*np.random.default_rng(0).normal(50, 2, 200).tolist(), 65.0]

    def score(config: ModelConfig) -> float:
        detector = Detector(config.series, config.regimes, config.choice, config.feedback, config.evidence)
        state = detector.new_state(1)
        for at, value in enumerate(values):
            verdict = detector.step(state, row, np.array([at * 60_000]), np.array([value]))
        return float(verdict.record_score[0])

    assert score(changed(ModelConfig(), "series.half", 14.0)) > score(ModelConfig()) + 5
