"""Ends every command with a code and words, never with a trace: the one place where errors become text."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import structlog
import typer
from confluent_kafka import KafkaException
from rich.console import Console

from engine.explain.printing import visible_lines
from engine.spec.errors import NewnormalError
from pipelines.cli import log_output

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # a wrong command line; typer exports no name of it
_OURS = 2
_UNEXPECTED = 70  # EX_SOFTWARE of sysexits.h


def guarded(app: typer.Typer, arguments: Sequence[str] | None = None) -> int:
    """Runs a command; whatever goes wrong is said on stderr with a code. NEWNORMAL_DEBUG=1 also shows the trace.

    Args:
        app: The commands.
        arguments: The command line without the program's name; that of this process if none is given.

    Returns:
        The exit code: 0, what the command says, 2 for an error that the user can mend, 70 for one that we did not
        expect, 130 for Ctrl-C.
    """
    try:
        return int(app(arguments, prog_name="newnormal", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        return 130
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # Polars panics with one that is no Exception
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.ctx.get_help())  # type: ignore[attr-defined]
            return _OURS
        ours = _ours(error)
        if os.environ.get("NEWNORMAL_DEBUG"):
            traceback.print_exc()
        if log_output.is_json():
            parts = {"where": ours.where, "accepted": ours.accepted, "now": ours.now}
            structlog.get_logger().error(ours.what, code=ours.code, **{k: v for k, v in parts.items() if v})
        else:
            console = Console(stderr=True, soft_wrap=True)
            console.print(_text(ours), style="bold red", markup=False, highlight=False)
        return _UNEXPECTED if ours.code == "UNEXPECTED_ERROR" else _OURS


def _text(error: NewnormalError) -> str:
    """The error as it is shown; a line of its texts cannot pass for one of ours."""
    fields = {"where": error.where, "accepted": error.accepted, "now": error.now}
    lines = [f"{error.code}: {error.what}", *(f"  {name}: {text}" for name, text in fields.items() if text)]
    return "\n".join(visible_lines(line.strip("\n").replace("\n", "\n    ")) for line in lines)


def _ours(error: BaseException) -> NewnormalError:
    if isinstance(error, NewnormalError):
        return error
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "newnormal"
        what = error.format_message()  # type: ignore[attr-defined]
        return NewnormalError("USAGE_INVALID", what, command, f"see {command} --help", "nothing was started")
    if isinstance(error, KafkaException):
        accepted = "a broker that answers; `newnormal services status` shows those of this machine"
        return NewnormalError(
            "KAFKA_UNREACHABLE", error.args[0].str(), "kafka.bootstrap", accepted, "the command ended"
        )
    if isinstance(error, OSError) and error.filename is not None:
        what = error.strerror or type(error).__name__
        return NewnormalError(
            "FILE_UNUSABLE", what, str(error.filename), "a path that can be used so", "the command ended"
        )
    what = f"{type(error).__name__}: {error}".strip()
    return NewnormalError(
        "UNEXPECTED_ERROR", what, _kept(), "NEWNORMAL_DEBUG=1 shows it here; please report it", "the command ended"
    )


def _kept() -> str:
    """Keeps the trace of the present error in a file, and says where."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="newnormal-", suffix=".log", delete=False) as file:
            file.write(f"{sys.argv}\n{traceback.format_exc()}")
    except OSError:
        return "no file could be written to keep the trace"
    return f"the trace is in {Path(file.name)}"
