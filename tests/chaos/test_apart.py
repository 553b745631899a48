"""Runs with servers of their own do not see the user's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.contracts.settings import load
from tests.chaos.runs.apart import apart


def test_neither_variables_nor_a_file_of_the_user_reach_a_run_and_both_are_there_again_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    home.mkdir()
    scratch.mkdir()
    (home / "newnormal.toml").write_text("[kafka]\npartitions = 10\n")
    monkeypatch.chdir(home)
    monkeypatch.setenv("NEWNORMAL_NAMESPACE", "site.")
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", "kafka.example:9092")
    with pytest.raises(KeyError), apart(scratch):
        settings = load()
        assert (settings.namespace, settings.kafka.bootstrap) == ("", None)
        assert settings.kafka.partitions != 10
        assert Path.cwd() == scratch
        raise KeyError
    assert (load().namespace, load().kafka.partitions) == ("site.", 10)
    assert Path.cwd() == home
