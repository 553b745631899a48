"""A command imports what it needs, not what others need: an operator who asks for help does not wait for the models."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import typer
from rich.markup import render

from pipelines.cli.commands import COMMANDS
from pipelines.cli.main import app


def _modules(*arguments: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", "-m", "pipelines.cli.main", *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stderr
    return {line.rsplit("|", 1)[-1].strip() for line in said.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize("command", [["--version"], ["demo", "--help"], ["replay", "--help"], ["services", "--help"]])
def test_a_command_does_not_import_models_and_jobs_that_it_does_not_use(command: list[str]) -> None:
    imported = _modules(*command)
    assert "typer" in imported
    assert not imported & {"numba", "scipy", "sqlglot", "pipelines.jobs", "pipelines.cli.incidents"}


def test_each_command_is_where_it_is_said_to_be_and_has_a_text_for_the_list() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert list(commands) == list(COMMANDS)
    for name in COMMANDS:
        assert commands[name].name == name
        assert commands[name].get_short_help_str()


def test_no_help_loses_words_in_brackets_which_would_be_taken_for_markup() -> None:
    """Bold is the only markup that helps have."""
    found, left = [], [(name, each) for name, each in typer.main.get_command(app).commands.items()]  # type: ignore[attr-defined]
    while left:
        name, command = left.pop()
        context = command.make_context(name, [], resilient_parsing=True) if hasattr(command, "list_commands") else None
        if context:
            left += [(f"{name} {each}", command.get_command(context, each)) for each in command.list_commands(context)]
        texts = [command.help or "", *(getattr(it, "help", None) or "" for it in command.params)]
        found += [(name, text) for text in texts if render(text).plain != re.sub(r"\[/?bold\]|\\(?=\[)", "", text)]
    assert found == []
