"""A site keeps the numbers of partitions and shards with which it began, since its topics and checkpoints have them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts import site
from pipelines.contracts.preferred import SMALL, prefer
from pipelines.contracts.settings import Settings, load


def numbers(settings: Settings) -> tuple[int, int]:
    return settings.kafka.partitions, settings.engine.shards


def test_every_later_command_on_the_state_folder_has_the_numbers_of_the_first(tmp_path: Path) -> None:
    usual = load(state_dir=tmp_path / "other")
    assert site.begin(load(state_dir=tmp_path), partitions=1, shards=1)
    assert numbers(load(state_dir=tmp_path)) == (1, 1)
    assert numbers(load(state_dir=tmp_path, **{"detector.emit": "all", "kafka.retention": "1d"})) == (1, 1)
    assert numbers(load(state_dir=tmp_path / "other")) == numbers(usual) != (1, 1)


def test_a_replay_of_a_demo_starts_servers_and_spark_that_optimize_no_more_than_those_of_the_demo(
    tmp_path: Path,
) -> None:
    assert site.begin(load(state_dir=tmp_path), partitions=1, shards=1, jvm_optimizes="never")
    assert load(state_dir=tmp_path).engine.jvm_optimizes == "never"
    assert load(state_dir=tmp_path, **{"engine.jvm_optimizes": "usual"}).engine.jvm_optimizes == "usual"
    assert load(state_dir=tmp_path / "other").engine.jvm_optimizes == "usual"


def test_a_namespace_is_a_site_of_its_own(tmp_path: Path) -> None:
    assert site.begin(load(state_dir=tmp_path, namespace="small."), partitions=1, shards=1)
    assert numbers(load(state_dir=tmp_path, namespace="small.")) == (1, 1)
    assert numbers(load(state_dir=tmp_path)) == numbers(load(state_dir=tmp_path / "other"))


@pytest.mark.parametrize(
    "chosen",
    [
        {"kafka.partitions": 6},
        {"engine.shards": 4},
        {"kafka.bootstrap": "127.0.0.1:9092"},
        {"spark.checkpoints": "s3a://checkpoints-of-a-site/state"},
    ],
)
def test_what_the_user_has_chosen_is_not_changed(chosen: dict[str, object], tmp_path: Path) -> None:
    before = numbers(load(state_dir=tmp_path, **chosen))
    assert not site.begin(load(state_dir=tmp_path, **chosen), partitions=1, shards=1)
    assert numbers(load(state_dir=tmp_path, **chosen)) == before


@pytest.mark.parametrize("begun", ["checkpoints/default", "kafka"])
def test_a_site_that_has_begun_otherwise_stays_as_it_is(begun: str, tmp_path: Path) -> None:
    (tmp_path / begun).mkdir(parents=True)
    assert not site.begin(load(state_dir=tmp_path), partitions=1, shards=1)
    assert numbers(load(state_dir=tmp_path)) != (1, 1)


def test_the_environment_is_stronger_than_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.begin(load(state_dir=tmp_path), partitions=1, shards=1)
    monkeypatch.setenv("NEWNORMAL_KAFKA__PARTITIONS", "8")
    assert numbers(load(state_dir=tmp_path)) == (8, 1)
    monkeypatch.setenv("NEWNORMAL_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("NEWNORMAL_KAFKA__PARTITIONS")
    assert numbers(load()) == (1, 1)


@pytest.mark.parametrize(
    "content", ["no JSON", '{"kafka": {"partitions": "many"}}', '{"kafka": {"brokers": 3}}', "[1]"]
)
def test_a_spoilt_file_stops_the_start_with_a_message(content: str, tmp_path: Path) -> None:
    (tmp_path / "site.json").write_text(content)
    with pytest.raises(NewnormalError) as refused:
        load(state_dir=tmp_path)
    assert refused.value.code == "SETTING_INVALID"


def test_where_nothing_can_be_written_the_usual_numbers_stay(tmp_path: Path) -> None:
    (tmp_path / "site.json").mkdir()
    assert not site.begin(load(state_dir=tmp_path), partitions=1, shards=1)
    assert numbers(load(state_dir=tmp_path)) != (1, 1)


@pytest.mark.parametrize("state", [5, ["x"], "~nobody-of-this-name/x", "/dev/null/x"])
def test_a_state_folder_that_cannot_be_one_is_refused_by_its_name(state: object) -> None:
    with pytest.raises(NewnormalError, match="state_dir = ") as refused:
        load(state_dir=state)
    assert refused.value.code == "SETTING_INVALID"


def test_numbers_that_do_not_go_together_are_refused_with_the_file_that_has_one_of_them(tmp_path: Path) -> None:
    assert site.begin(load(state_dir=tmp_path), partitions=1, shards=1)
    with pytest.raises(NewnormalError, match=re.escape(str(tmp_path / "site.json"))):
        load(state_dir=tmp_path, **{"engine.shards": 2})


def test_a_command_prefers_what_nobody_has_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWNORMAL_ENGINE__DRIVER_MEMORY", "1g")
    overrides: dict[str, object] = {"state_dir": tmp_path, "engine.cores": 3}
    added = prefer(overrides, SMALL)
    settings = load(**overrides)
    assert (settings.engine.driver_memory, settings.engine.cores, settings.engine.memory) == ("1g", 3, "small")
    assert set(added) == set(SMALL) - {"engine.cores", "engine.driver_memory"}
    assert all(overrides[name] == value for name, value in added.items())
