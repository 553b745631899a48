"""`newnormal change`: says what was done at a site, so that incidents name it. Programs report it to the gateway."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Annotated

import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import duration_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.cli.options import AsJson, Overrides, with_kafka
from pipelines.cli.seen import warn_if_unseen
from pipelines.contracts.globs import is_glob
from pipelines.contracts.records import Change, Rule
from pipelines.contracts.records.change import OF_SINGLE_MACHINES, ChangeKind
from pipelines.contracts.settings import Settings, load
from pipelines.query import control_topics as operators

app = typer.Typer(
    help="Say what was done at the site: deployments, new configuration, restarts, feature flags. Incidents name what "
    "came before them; see docs/changes.md.",
    no_args_is_help=True,
)
_WHEN = "ISO 8601, 'now', or a time ago such as -10m"


@app.command()
@with_kafka
def add(
    overrides: Overrides,
    message: Annotated[str, typer.Argument(help="What was done, in words.", show_default=False)],
    machine: Annotated[
        list[str] | None,
        typer.Option(help="A machine on which it was done, or a glob of * and ?; repeatable. Default: the whole site."),
    ] = None,
    kind: Annotated[ChangeKind, typer.Option(help="What kind of change it was.")] = "other",
    at: Annotated[str, typer.Option(help=f"When it began: {_WHEN}.")] = "now",
    until: Annotated[str | None, typer.Option(help=f"When it had ended: {_WHEN}.", show_default=False)] = None,
    name: Annotated[
        str | None, typer.Option("--id", help="Its id; a later message with the same id replaces it.")
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option(
            help="What its machines do is expected for so long, such as 30m: a rule mutes them until then, and they "
            "learn nothing from it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Report a change; incidents of its machines, and of what depends on them, name it if they begin within 30 minutes.

    [bold]newnormal change add "release cart 1.4" --machine 'web-*' --kind deployment[/bold]

    An upgrade whose effects are expected:
    [bold]newnormal change add "kernel 6.12" --machine host-7 --kind restart --expected 30m[/bold]

    A pipeline of CI reports it to the gateway instead, as a CloudEvent; see docs/changes.md.
    """
    settings, now = running(load(**overrides), elasticsearch=False), now_ms()
    begin = operators.instant(at, now, "--at")
    fields = {
        "id": name or _id(kind, message, machine or [], begin),
        "time": begin,
        "end": operators.instant(until, now, "--until"),
        "kind": kind,
        "message": message,
        "machines": machine or [],
        "by": getpass.getuser(),
        "source": "newnormal change",
    }
    change = operators.checked(Change, fields, settings, now)
    _check(change)
    rules = [] if expected is None else _muting(change, duration_ms(expected, "--expected"), settings, now)
    operators.write(settings, change)
    if rules:
        operators.write(settings, *rules)
    where = ", ".join(change.machines) or "the whole site"
    typer.echo(visible(f"{change.id}: {change.message}, on {where}"))
    for rule in rules:
        typer.echo(visible(f"rule {rule.id}: {rule.entity} is muted for {expected}"))
    for glob in change.machines:
        warn_if_unseen(settings, glob, "*")


@app.command("list")
@with_kafka
def list_(overrides: Overrides, as_json: AsJson = False) -> None:
    """List the changes that Kafka keeps, for 90 days at least, the last one first."""
    settings = running(load(**overrides), elasticsearch=False)
    rows.echo_records(operators.changes(settings)[::-1], as_json, _show)


def _show(changes: Sequence[Change]) -> None:
    if not changes:
        typer.echo(hint("no change was reported; `newnormal change add` reports one"))
        return
    columns = dict.fromkeys(("began", "kind", "machines", "what", "by", "id"), False)
    rows.show(columns, [_row(each) for each in changes])


def _row(change: Change) -> list[object]:
    kind, where = change.kind.replace("_", " "), ", ".join(change.machines) or "*"
    return [iso(change.time), kind, where, change.message, change.by, change.id]


def _check(change: Change) -> None:
    """Refuses a change that cannot be meant, or has no effect: what explains silence is said of machines by name.

    Raises:
        NewnormalError: ``CHANGE_INVALID``.
    """
    if change.end is not None and change.end < change.time:
        what = f"it would have ended at {iso(change.end)}, before it began at {iso(change.time)}"
        raise NewnormalError("CHANGE_INVALID", what, "--until", "a time after --at", "nothing was reported")
    by_glob = change.kind != "ended" and any(map(is_glob, change.machines))
    if change.kind in OF_SINGLE_MACHINES and (by_glob or not change.machines):
        what = f"a change of the kind {change.kind} for {', '.join(change.machines) or 'the whole site'}"
        accepted = "names of machines; for `ended` also globs of `*` and `?`"
        raise NewnormalError("CHANGE_INVALID", what[:300], "--machine", accepted, "nothing was reported")


def _muting(change: Change, lasts: int, settings: Settings, now: int) -> list[Rule]:
    """The rules for what is expected: one for each glob of machines."""
    common = {
        "time": now,
        "start": max(change.time, now),
        "end": max(change.time, now) + lasts,
        "skip_result": True,
        "skip_learning": True,
        "note": f"expected after the change {change.id}"[:4_096],
    }
    globs = change.machines or ["*"]
    named = [f"change-{blake2b(f'{change.id} {glob}'.encode(), digest_size=6).hexdigest()}" for glob in globs]
    return [
        operators.checked(Rule, {"id": name, "entity": glob, **common}, settings, now)
        for name, glob in zip(named, globs, strict=True)
    ]


def _id(kind: ChangeKind, message: str, machines: Sequence[str], at: int | None) -> str:
    """An id of the day and the content, so that the same command twice within a second says one change."""
    day = datetime.fromtimestamp((at or 0) / 1000, UTC).strftime("%Y%m%d")
    text = "\0".join([kind, message, *machines, str((at or 0) // 1000)])
    return f"{day}-{blake2b(text.encode(), digest_size=4).hexdigest()}"
