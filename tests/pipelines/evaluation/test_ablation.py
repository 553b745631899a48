"""`newnormal bench ablation`: a mechanism that the data depend on has an effect, another one none; a run goes on."""

from __future__ import annotations

import json
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


def test_effects_are_differences_from_the_models_as_they_are_and_a_mechanism_that_matters_is_first(data: Path) -> None:
    made = ablation.run(data, data, "asd", "evidence.frozen_forget, machine.pace", noise=2)
    normal = ablation.figures(data, "asd", ModelConfig())
    off = ablation.figures(data, "asd", changed(ModelConfig(), "machine.pace", 1.0))
    assert made["as it is"] == normal and 0 < normal["ASD"] < 100
    rows = {(row["constant"], row["how"]): row for row in made["effects"]}
    assert rows["machine.pace", "off"]["ASD"] == off["ASD"] - normal["ASD"] != 0
    unused = [row for (constant, _), row in rows.items() if constant == "evidence.frozen_forget"]
    assert [row["how"] for row in unused] == ["off", "halved", "doubled"]
    assert {row["ASD"] for row in unused} == {0.0}, "no value repeats itself"
    assert made["effects"][0]["constant"] == "machine.pace"
    assert made["worth"]["evidence.frozen_forget"] == "nothing: no figure changes"
    assert made["noise"]["ASD"] > 0
    assert json.loads((data / "ablation.json").read_text()) == made


def test_a_value_stays_within_the_range_of_its_constant(data: Path) -> None:
    made = ablation.run(data, data, "asd", "series.band", noise=2)
    assert sorted(row["value"] for row in made["effects"]) == [0.5, 0.999999]


def test_a_run_that_was_stopped_goes_on_where_it_was(data: Path) -> None:
    first = ablation.run(data, data, "asd", "series.band", noise=2)
    file = data / "ablation.jsonl"
    *kept, last = file.read_text().splitlines(keepends=True)
    told = json.loads(kept[0]) | {"figures": {"ASD": 1.0, "ASD state": 2.0}}
    file.write_text("".join([json.dumps(told) + "\n", *kept[1:], last[:20]]))
    second = ablation.run(data, data, "asd", "series.band", noise=2)
    assert second["as it is"] == {"ASD": 1.0, "ASD state": 2.0}, "what has a line is not judged again"
    shift = first["as it is"]["ASD"] - 1.0
    assert [row["ASD"] for row in second["effects"]] == pytest.approx([row["ASD"] + shift for row in first["effects"]])


@pytest.mark.parametrize(
    ("names", "only", "words"),
    [
        ("ads", "", ["SETTING_INVALID: ads", "nab, cloud_monitoring, asd, kinds"]),
        (
            "asd",
            "series.half,serious",
            ["SETTING_INVALID: serious", "series, evidence, departures, regimes, choice, machine"],
        ),
        ("nab", "", ["FILE_UNUSABLE"]),
    ],
)
def test_what_is_not_there_is_told_before_anything_is_measured(
    data: Path, names: str, only: str, words: list[str]
) -> None:
    with pytest.raises(NewnormalError) as told:
        ablation.run(data, data, names, only)
    assert [word for word in words if word not in str(told.value)] == []
    assert not (data / "ablation.jsonl").exists()
