"""`newnormal decode`: shows what the messages of an agent become, before the agent is connected."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from engine.clock import now_ms
from engine.printing import visible
from engine.spec.errors import NewnormalError
from engine.spec.time_bounds import TimeBounds
from pipelines.cli import rows
from pipelines.cli.options import AsJson
from pipelines.contracts.settings import load

_SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug", "unknown")


def decode(
    files: Annotated[list[str], typer.Argument(help="Files of messages, one a line; - for the standard input.")],
    form: Annotated[
        str | None, typer.Option("--format", help="The format of all messages. Default: by the content of each.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what each message becomes: samples, log lines, or the reason and code with which it would be refused.

    Nothing is sent. A file of Prometheus text, of OTLP protobuf or of CSV, and JSON over several lines, is one message.
    The exit code is 1 if a message, or a part of one, would be refused. The formats are in docs/input.md.

    Example: [bold]kafkacat -b broker -t my.topic -c 20 | newnormal decode -[/bold]
    """
    from pipelines.formats import catalogue, trial  # the decoders load Polars and Arrow
    from pipelines.formats.rules import Rules

    if form is not None and form not in catalogue.BY_NAME:
        accepted = ", ".join(catalogue.BY_NAME)
        raise NewnormalError("FORMAT_NAME_UNKNOWN", form, "--format", accepted, "nothing was decoded")
    settings = load()
    rules = Rules.of(settings.input)
    bounds = TimeBounds(settings.watermark.max_ahead, settings.watermark.earliest)
    chosen, total = catalogue.BY_NAME[form] if form else None, _Total()
    for file in files:
        content = sys.stdin.buffer.read() if file == "-" else _content(Path(file))
        values = trial.messages_in(content, chosen, rules)
        for number, fate in enumerate(trial.fates(values, chosen, rules, bounds, now_ms()), 1):
            total.add(fate)
            typer.echo(_json(file, number, fate) if as_json else _text(file, number, fate))
    if not as_json:
        typer.echo(total.text())
    raise typer.Exit(1 if total.refused else 0)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        what = error.strerror or str(error)
        raise NewnormalError("FILE_UNUSABLE", what, str(path), "a file of messages", "the command ended") from None


class _Total:
    """Counts what messages become."""

    def __init__(self) -> None:
        self.messages = self.samples = self.lines = self.refused = self.nothing = 0
        self.series: set[tuple[str, str]] = set()

    def add(self, fate: Any) -> None:
        self.messages += 1
        self.samples += len(fate.samples)
        self.lines += len(fate.lines)
        self.refused += bool(fate.refused)
        self.nothing += not (fate.samples or fate.lines or fate.refused)
        self.series |= {(row["entity"], row["metric"]) for row in fate.samples}

    def text(self) -> str:
        machines = len({entity for entity, _ in self.series})
        series = f"{len(self.series):,} series of {machines:,} machines"
        parts = [
            f"{self.messages:,} messages: {self.samples:,} samples of {series}",
            f"{self.lines:,} log lines",
            f"{self.refused:,} messages refused, wholly or in part",
        ]
        parts += [f"{self.nothing:,} messages hold no value"] if self.nothing else []
        return ", ".join(parts)


def _text(file: str, number: int, fate: Any) -> str:
    what = [f"{len(fate.samples)} samples"] if fate.samples else []
    what += [f"{len(fate.lines)} log lines"] if fate.lines else []
    what += ["refused" if not what else "a part refused"] if fate.refused else []
    shown = [f"{file}:{number} {fate.format or 'unknown format'}: {', '.join(what) or 'no value'}"]
    shown += [
        f"  {_when(row['time'])}  {row['entity']}  {row['metric']}  {row['value']:g}  {row['kind']}"
        for row in fate.samples
    ]
    for row in fate.lines:
        level = _SEVERITIES[row["severity"]]
        shown.append(f"  {_when(row['time'])}  {row['entity']}  {row['program'] or '-'}  {level}  {row['message']}")
    shown += [f"  {code}: {why}" for code, why in fate.refused]
    return "\n".join(visible(line) for line in shown)


def _when(ms: int) -> str:
    return str(rows.readable("time", ms))


def _json(file: str, number: int, fate: Any) -> str:
    parts: dict[str, Any] = {"file": file, "message": number, "format": fate.format or None}
    parts |= {"samples": list(map(_aliased, fate.samples)), "lines": list(map(_aliased, fate.lines))}
    parts["refused"] = [{"error.code": code, "error.message": why} for code, why in fate.refused]
    return orjson.dumps(parts).decode()


_ALIASES = {
    "time": "@timestamp",
    "entity": "host.name",
    "program": "process.name",
    "severity": "log.syslog.severity.code",
}


def _aliased(row: dict[str, Any]) -> dict[str, Any]:
    return {_ALIASES.get(name, name): value for name, value in row.items()}
