"""`newnormal bench ablation`: a constant that the data depend on changes a figure, another one does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.spec.errors import NewnormalError
from models.model_config import ModelConfig, changed
from tests.benchmarks import ablation


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A machine of two gauges whose level rises for twenty windows: the data set asd, in small."""
    values = np.random.default_rng(3).normal(50, 2, (400, 2))
    labels = np.zeros(250)
    labels[150:170] = 1
    values[300:320] += 15
    (tmp_path / "asd").mkdir()
    np.savez(tmp_path / "asd" / "one.npz", train=values[:150], test=values[150:], label=labels)
    return tmp_path


def test_effects_are_differences_from_the_models_as_they_are_and_the_largest_is_first(data: Path) -> None:
    made = ablation.run(data, ["asd"], ["choice.lead", "series.window_pace"], 2.0)
    normal = ablation.figures(data, ["asd"], ModelConfig())
    slower = ablation.figures(data, ["asd"], changed(ModelConfig(), "series.window_pace", 0.0175))
    assert made["as it is"] == normal and 0 < normal["ASD"] < 100
    rows = {(row["constant"], row["value"]): row["ASD"] for row in made["effects"]}
    assert rows["series.window_pace", 0.0175] == slower["ASD"] - normal["ASD"] != 0
    assert rows["choice.lead", 10.0] == rows["choice.lead", 2.5] == 0, "no gauge has a family to choose"
    assert [row["constant"] for row in made["effects"]][2:] == ["choice.lead"] * 2


def test_a_value_stays_within_the_range_of_its_constant(data: Path) -> None:
    made = ablation.run(data, ["asd"], ["series.band"], 2.0)
    assert sorted(row["value"] for row in made["effects"]) == [0.5, 0.999999]


@pytest.mark.parametrize(
    ("parts", "only", "code"),
    [(["ads"], [], "SETTING_INVALID"), (["asd"], ["series.no"], "SETTING_INVALID"), ([], [], "DATA_ABSENT")],
)
def test_what_is_not_there_is_told_before_anything_is_measured(
    data: Path, parts: list[str], only: list[str], code: str
) -> None:
    with pytest.raises(NewnormalError, match=code):
        ablation.run(data, parts, only, 2.0)
