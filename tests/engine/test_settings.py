"""A wrong setting stops the start with a message that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window.size", "10 parsecs"),
        ("window.size", ""),
        ("kafka.partitions", 0),
        ("kafka.partitions", "many"),
        ("engine.shards", -1),
        ("engine.driver_memory", "2gb"),
        ("detector.threshold", 101),
        ("detector.emit", "some"),
        ("elasticsearch.index", "Novelties"),
        ("namespace", "no-dot"),
        ("console.port", 70_000),
        ("window.sise", "10s"),
        ("nonsense", 1),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(name: str, value: object) -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{name: value})
    assert caught.value.code == "SETTING_INVALID"
    assert name in caught.value.what
    assert repr(value) in caught.value.what
    assert caught.value.now == "nothing was started"


def test_all_wrong_settings_are_named_at_once() -> None:
    with pytest.raises(NewnormalError) as caught:
        load(**{"window.size": "x", "kafka.partitions": 0})
    assert "window.size" in caught.value.what
    assert "kafka.partitions" in caught.value.what


def test_partitions_must_be_a_multiple_of_shards() -> None:
    with pytest.raises(NewnormalError, match=r"no multiple of engine\.shards"):
        load(**{"kafka.partitions": 4, "engine.shards": 3})


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "newnormal.toml").write_text('[window]\nsize = "30s"\nallowed_lateness = "1h"\n')
    assert load().window.size == "30s"
    monkeypatch.setenv("NEWNORMAL_WINDOW__SIZE", "20s")
    assert load().window.size == "20s"
    assert load(**{"window.size": "10s"}).window.size == "10s"
    assert load().window.allowed_lateness == "1h"


def test_a_broken_file_is_an_error_of_settings(elsewhere: Path) -> None:
    (elsewhere / "newnormal.toml").write_text("[window\n")
    with pytest.raises(NewnormalError, match="SETTING_INVALID"):
        load()


def test_a_wrong_environment_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWNORMAL_ENGINE__SHARDS", "two")
    with pytest.raises(NewnormalError) as caught:
        load()
    assert "NEWNORMAL_ENGINE__SHARDS" in caught.value.where


def test_a_family_that_there_is_not_is_named_with_its_metrics(elsewhere: Path) -> None:
    (elsewhere / "newnormal.toml").write_text('[detector.family]\n"errors*" = "count"\n')
    assert load().detector.family == {"errors*": "count"}
    with pytest.raises(NewnormalError, match=r"(?s)detector\.family\.errors\* = 'poisson'.*ratio, categorical"):
        load(**{"detector.family": {"errors*": "poisson"}})
