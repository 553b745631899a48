"""Every command with wrong input: it ends by itself, with a code, and never in a trace."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from deploy.embedded import external
from engine.spec.errors import REGISTRY
from pipelines.cli.guard import guarded
from pipelines.cli.main import app

NOWHERE = "127.0.0.1:1"
SERVES = {"console"}
"""Commands that run until Ctrl-C although no server answers."""
LOCAL = {"savepoint"}
"""Commands that look into a folder first: there is nothing in it, and no server is asked."""
FINDS = {"doctor"}
"""Commands for which an absent server is a finding among others, and their exit code 1: test_doctor.py."""
LIMIT = 200
"""Seconds after which a command is taken to hang: much more than one takes on a busy machine."""

Command = Any


def commands(group: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """All commands of the app, found in it: a new one is tested without being told here."""
    for name, command in group.commands.items():
        inner = (*path, name)
        yield from commands(command, inner) if hasattr(command, "commands") else [(inner, command)]


BRIEF = {
    "agent": ["--to", "new", "--duration", "200ms"],
    "tail-file": ["--to", "new", "--duration", "200ms"],
    "simulate": ["--to", "new", "--duration", "0s"],
    "play": ["--to", "new"],
}
"""Sources wait for a Kafka that does not answer, for as long as it takes (tests/datagen); here they write to files."""

ALL = dict(commands(typer.main.get_command(app)))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of all sorts, and no server that answers."""
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 8)
    (tmp_path / "good.csv").write_text("time,value\n1,1\n2,2\n")
    (tmp_path / "site.csv").write_text("machine,parent\nvm-1,host-1\n")
    (tmp_path / "draft.toml").write_text("[notify]\n")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEWNORMAL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", NOWHERE)
    monkeypatch.setenv("NEWNORMAL_ELASTICSEARCH__URL", f"http://{NOWHERE}")
    monkeypatch.setenv("NEWNORMAL_CONSOLE__PORT", "0")
    monkeypatch.setenv("NEWNORMAL_ARCHIVE__PATH", str(tmp_path / "archive"))
    monkeypatch.delenv("NEWNORMAL_DEBUG", raising=False)
    monkeypatch.setattr(external, "TIMEOUT", 0.2)
    return tmp_path


RIGHT = {
    "files": ["good.csv"],
    "paths": ["good.csv"],
    "out": ["out"],
    "data": ["folder"],
    "topic": ["telemetry"],
    "query": ["SELECT 1 AS one FROM telemetry"],
    "name": ["sine"],
    "verdict": ["true"],
    "entity": ["a"],
    "incident": ["aaa"],
    "machine": ["a"],
    "time": ["-1h"],
    "channel": ["night"],
    "metric": ["cpu"],
    "first": ["v1"],
    "second": ["v2"],
    "new": ["v2"],
    "place": ["telemetry/0@1"],
    "machines": ["vm-1", "vm-2"],
    "on": ["host-1"],
    "file": ["site.csv"],
    "events": ["1e3"],
    "series": ["1e3"],
    "url": ["http://127.0.0.1:1"],
    "match": ["up"],
    "index": ["metricbeat-1"],
    "draft": ["draft.toml"],
    "message": ["cart 1.4"],
}
"""A right value of each parameter that some command cannot do without, by its name."""

MORE = {
    ("rule", "add"): ["--report"], ("rule", "try"): ["--report"], ("example",): ["--live"],
    ("label", "try"): ["a"], ("budget", "try"): ["--score", "60"],
    ("deadletter", "retry"): ["--all"], ("topology", "place"): ["--on", "host"],
}  # fmt: skip
"""What else makes a command line right."""

INPUTS = {"files", "labels", "data", "file"}
"""Parameters that name what is read; the others name what is written, where a new name or an old file is right."""


def wrong(parameter: Any) -> list[str]:
    """Values that a parameter cannot take, or that name nothing."""
    kind = str(parameter.type_descriptor.annotation)
    if "Path" not in kind:
        return ["[/no such]\x1b[31m\n"] if "str" in kind else ["many"]
    inputs = ["folder", "binary", "\x1b[31m[no such]\n"] if parameter.name in INPUTS else []
    return ["good.csv/below", *inputs]


def line(command: Command, parameter: Any, value: str) -> list[str]:
    """A command line with one wrong value; what else the command needs is right."""
    words: list[str] = []
    for own in command.params:
        option = own.opts[0] if own.opts[0].startswith("-") else None
        if own is parameter:
            words += [option, value] if option else [value]
        elif own.required:
            words += [option, *RIGHT[own.name]] if option else RIGHT[own.name]
    return words


def asks_a_server(command: Command) -> bool:
    """Whether a command takes the address of a server."""
    return any(own.name in ("kafka", "elasticsearch") and not own.is_flag for own in command.params)


def ended(words: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and all output of a command; it is interrupted as by Ctrl-C after a while."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(LIMIT if words[0] not in SERVES else 2)
    try:
        code = guarded(app, words)
    except KeyboardInterrupt:
        code = 130
    finally:
        signal.alarm(0)
    captured = capfd.readouterr()
    return code, captured.out + captured.err


def check(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    code, text = ended(words, capfd)
    assert "Traceback" not in text, (words, text)
    assert "\x1b" not in text, (words, text)
    if words[0] in SERVES and code in (0, 130):
        return
    assert code != 130, f"{words} did not end by itself"
    codes = [name for name in re.findall(r"^([A-Z][A-Z_]+): ", text, re.MULTILINE) if name in REGISTRY]
    assert (code == 2) == bool(codes) and "UNEXPECTED_ERROR" not in codes, (words, code, text)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_command_with_wrong_input_ends_with_a_code(
    path: tuple[str, ...], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ALL[path]
    for parameter in command.params:
        if not getattr(parameter, "is_flag", False):
            for value in wrong(parameter):
                check([*path, *BRIEF.get(path[0], []), *line(command, parameter, value)], capfd)
    check([*path, "--no-such-option"], capfd)
    check([*path, *["too", "many", "words", "for", "any"]], capfd)


def test_an_error_that_nobody_foresaw_has_a_code_and_its_trace_is_kept(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = typer.Typer()

    @faulty.command()
    def fails() -> None:
        raise ZeroDivisionError("of [red]all\x1b[2J things")

    monkeypatch.delenv("NEWNORMAL_DEBUG", raising=False)
    assert guarded(faulty, []) == 70
    said = capfd.readouterr().err
    assert said.startswith("UNEXPECTED_ERROR: ZeroDivisionError: of [red]all\\u001b[2J things\n")
    kept = re.search(r"the stack trace is in (\S+)", said)
    assert kept is not None
    assert "Traceback" not in said and "ZeroDivisionError" in Path(kept[1]).read_text()
    Path(kept[1]).unlink()
    monkeypatch.setenv("NEWNORMAL_DEBUG", "1")
    monkeypatch.setenv("TMPDIR", "/nowhere")
    guarded(faulty, [])
    assert "Traceback" in capfd.readouterr().err


def test_a_server_that_an_example_would_not_ask_is_no_option(capfd: pytest.CaptureFixture[str]) -> None:
    code, text = ended(["example", "sine", "--kafka", "127.0.0.1:1"], capfd)
    assert code == 2 and text.startswith("USAGE_INVALID: ") and "--live" in text


def test_ctrl_c_and_help_are_no_errors(capfd: pytest.CaptureFixture[str]) -> None:
    interrupted = typer.Typer()

    @interrupted.command()
    def stopped() -> None:
        raise KeyboardInterrupt

    assert guarded(interrupted, []) == 130
    assert guarded(app, ["score", "--help"]) == 0
    assert guarded(app, ["services"]) == 2
    said = capfd.readouterr()
    assert "Usage: newnormal services" in said.out and not said.err


@pytest.mark.parametrize("path", [path for path, one in ALL.items() if asks_a_server(one)], ids=" ".join)
def test_a_command_says_that_its_server_does_not_answer(
    path: tuple[str, ...], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if path[0] in SERVES | LOCAL | FINDS or path[0] in BRIEF:
        return
    code, text = ended([*path, *line(ALL[path], None, ""), *MORE.get(path, [])], capfd)
    assert code == 2 and "Traceback" not in text
    assert re.search(r"^(KAFKA|ELASTICSEARCH)_UNREACHABLE: ", text, re.MULTILINE), text
