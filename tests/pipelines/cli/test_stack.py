"""`newnormal stack` where no engine runs, and where the command line is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("command", [["up"], ["status"], ["logs"], ["down"], ["doctor"], ["up", "--embedded"]])
def test_without_an_engine_each_command_says_so_and_what_to_do(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: list[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    code, _, shown = run("stack", *command)
    assert code == 2
    assert shown.startswith("ENGINE_ABSENT: no Docker engine answers")
    assert f"where: unix://{tmp_path}/docker.sock" in shown and "systemctl start docker" in shown


def test_an_unknown_profile_is_refused_with_the_names_that_there_are(run: Run) -> None:
    code, _, shown = run("stack", "up", "--profile", "swarm")
    assert code == 2
    assert "USAGE_INVALID" in shown and "dashboards or gateway or load or cluster" in shown
