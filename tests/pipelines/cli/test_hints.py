"""A command that is told to look into a folder says so in what it tells the reader to try next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from pipelines.cli import hints
from pipelines.cli.demo import what_next
from pipelines.cli.main import app
from tests.pipelines.cli.conftest import Run

SERVERS = {"--kafka", "--elasticsearch", "--view", "--namespace"}
"""Options by which a command finds a server, or what is on it."""
PRINTS_ONLY = {("acls",)}
"""It has a namespace, and prints what the settings say: it looks at no server and no folder."""


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """The path and the options of all commands."""
    for name, each in group.commands.items():
        inner = (*path, name)
        if hasattr(each, "commands"):
            yield from commands(each, inner)
        else:
            yield inner, {option for parameter in each.params for option in parameter.opts}


ALL = dict(commands(typer.main.get_command(app)))


def test_each_command_that_looks_for_servers_takes_the_folder_in_which_they_are() -> None:
    without = {path for path, options in ALL.items() if options & SERVERS and "--state-dir" not in options}
    assert without == PRINTS_ONLY


def test_the_trial_of_a_channel_takes_the_folder_like_its_neighbours() -> None:
    assert "--state-dir" in ALL["notify", "test"]


def test_a_hint_has_the_folder_exactly_for_the_commands_that_take_it() -> None:
    names = {path[0] for path in ALL}
    placed = {name for name in names if any("--state-dir" in ALL[path] for path in ALL if path[0] == name)}
    some_do_not = {"bench", "chaos", "example"}  # they measure or show by servers of their own; no hint is of use there
    assert names - placed <= hints.PLACELESS
    assert (hints.PLACELESS & names) - some_do_not == names - placed - some_do_not


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that a command line has named."""
    yield hints.remember(tmp_path / "site") or tmp_path
    hints.begin()


def test_each_command_in_what_to_try_after_the_demo_has_its_folder(folder: Path) -> None:
    told = [line for line in re.findall(r"newnormal [^`\n]+", what_next()) if "--help" not in line]
    assert len(told) == 8
    assert all(line.rstrip().endswith(f"--state-dir {folder}") for line in told)


def test_without_a_folder_nothing_is_added() -> None:
    hints.begin()
    assert "--state-dir" not in what_next()


def test_an_error_names_commands_with_the_folder_of_the_command_line(run: Run, elsewhere: Path) -> None:
    place = elsewhere / "other"
    code, _, error = run("savepoint", "show", "friday", "--state-dir", str(place))
    assert code == 2
    assert f"`newnormal savepoint create NAME --state-dir {place}`" in error
    code, _, error = run("savepoint", "show", "friday")
    assert code == 2
    assert "`newnormal savepoint create NAME`" in error


def test_the_view_is_asked_as_the_settings_say_whatever_the_folder(run: Run, elsewhere: Path) -> None:
    code, _, error = run("query", "counts", "--view", "http://127.0.0.1:1", "--state-dir", str(elsewhere))
    assert code == 2
    assert f"`newnormal view --state-dir {elsewhere}`" in error
