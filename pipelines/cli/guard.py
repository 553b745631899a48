"""Turns every error of a command into a message with an error code and an exit code, never into a stack trace."""

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

from engine.explain.redaction import redacted
from engine.kafka.diagnosis import forbidden
from engine.printing import visible_lines
from engine.spec.errors import NewnormalError
from pipelines.cli import hints, log_output
from pipelines.contracts.settings.secret_values import secret_values

_UsageError: type[Exception] = typer.BadParameter.__mro__[
    1
]  # raised for a wrong command line; typer does not export it
_DECLINED = 1
_EXPECTED = 2
_UNEXPECTED = 70  # EX_SOFTWARE of sysexits.h


def guarded(app: typer.Typer, arguments: Sequence[str] | None = None) -> int:
    """Runs a command; writes any error to stderr with its code. NEWNORMAL_DEBUG=1 also shows the stack trace.

    Args:
        app: The commands.
        arguments: The command line without the program's name; ``None``: the command line of this process.

    Returns:
        The exit code: that of the command (0 for success), 1 if it asked and was not told to go on, 2 for an error that
        the user can correct, 70 for an unexpected error, 130 for Ctrl-C.
    """
    try:
        return int(app(arguments, prog_name="newnormal", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        return 130
    except typer.Abort:  # a question was not answered with yes
        typer.echo("nothing was changed")
        return _DECLINED
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of Polars is a BaseException, but no Exception
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.ctx.get_help())  # type: ignore[attr-defined]
            return _EXPECTED
        shown = _with_code(error)
        if os.environ.get("NEWNORMAL_DEBUG"):
            traceback.print_exc()
        if log_output.is_json():
            parts = {"where": shown.where, "accepted": hints.hint(shown.accepted), "now": hints.hint(shown.now)}
            structlog.get_logger().error(shown.what, code=shown.code, **{k: v for k, v in parts.items() if v})
        else:
            console = Console(stderr=True, soft_wrap=True)
            console.print(_text(shown), style="bold red", markup=False, highlight=False)
        return _UNEXPECTED if shown.code == "UNEXPECTED_ERROR" else _EXPECTED
    finally:
        hints.begin()


def _text(error: NewnormalError) -> str:
    """The error as text; lines within its parts are indented, so that user data cannot imitate lines of the message."""
    fields = {"where": error.where, "accepted": hints.hint(error.accepted), "now": hints.hint(error.now)}
    lines = [f"{error.code}: {error.what}", *(f"  {name}: {text}" for name, text in fields.items() if text)]
    return "\n".join(visible_lines(line.strip("\n").replace("\n", "\n    ")) for line in lines)


def _with_code(error: BaseException) -> NewnormalError:
    """The error that is shown for any other error."""
    if isinstance(error, NewnormalError):
        return error
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "newnormal"
        what = error.format_message()  # type: ignore[attr-defined]
        return NewnormalError("USAGE_INVALID", what, command, f"see {command} --help", "nothing was started")
    now = "the command ended"
    if isinstance(error, KafkaException):
        if refusal := forbidden(error.args[0], "what the command needs", "kafka.sasl_username", now):
            return refusal
        accepted = "a broker that answers; `newnormal services status` shows the embedded one"
        return NewnormalError("KAFKA_UNREACHABLE", error.args[0].str(), "kafka.bootstrap", accepted, now)
    if isinstance(error, OSError) and error.filename is not None:
        what = error.strerror or type(error).__name__
        return NewnormalError("FILE_UNUSABLE", what, str(error.filename), "a path that can be read or written", now)
    secrets, accepted = secret_values(), "please report it; NEWNORMAL_DEBUG=1 shows it"
    what = redacted(f"{type(error).__name__}: {error}".strip(), secrets)
    return NewnormalError("UNEXPECTED_ERROR", what, _trace_file(secrets), accepted, now)


def _trace_file(secrets: Sequence[str]) -> str:
    """Writes the stack trace of the current error, without secrets, to a file; returns a phrase that names it."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="newnormal-", suffix=".log", delete=False) as file:
            file.write(redacted(f"{sys.argv}\n{traceback.format_exc()}", secrets))
    except OSError:
        return "the stack trace could not be written to a file"
    return f"the stack trace is in {Path(file.name)}"
