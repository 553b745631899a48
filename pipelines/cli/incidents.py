"""`newnormal incidents`: lists, shows and acknowledges incidents. `pipelines.query.incidents` does the work."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import Annotated

import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import duration_ms, iso
from pipelines.cli import rows
from pipelines.cli.hints import hint
from pipelines.cli.option_set import option_set
from pipelines.cli.options import AsJson, Overrides, ShownVersion, with_servers
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.records import Incident
from pipelines.contracts.records.incident import STANDING, EarlierChange, LogChange
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.version_names import FIRST
from pipelines.query import incidents as stored

app = typer.Typer(
    help="List and show incidents, and say that you look after one; see docs/incidents.md.", no_args_is_help=True
)

Id = Annotated[str, typer.Argument(help="Id of the incident, or the beginning of it.")]
By = Annotated[str | None, typer.Option(help="Your name. Default: that of your account on this machine.")]
Note = Annotated[str, typer.Option(help="A remark of yours.")]

_COLUMNS = {"id": False, "status": False, "severity": False, "start": False, "machines": True, "message": False}


@with_servers
def _settings(overrides: Overrides, version: ShownVersion = None) -> Settings:
    """The settings of the version that the option names, else of the one that readers see."""
    from pipelines.versions.promotion import shown_version  # servers: only for commands that need it
    from pipelines.versions.registry import Registry

    there = running(load(**overrides), elasticsearch=version is None)
    return there.of(Registry(there).get(version or shown_version(there) or FIRST).names)


of_a_version = option_set("settings", _settings)
"""A decorator: gives a command the settings of the version that is asked about, with the servers that run."""


@app.command("list")
@of_a_version
def list_(
    settings: Settings,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are resolved or merged.")] = False,
    machine: Annotated[str, typer.Option(help="Only those with this machine. Default: all.", show_default=False)] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at most, the last opened first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the incidents that are not over."""
    known = [each for each in stored.incidents(settings) if everything or each.status in STANDING]
    chosen = [each for each in known if not machine or stored.concerns(each, machine)][:limit]

    def show_records(incidents: Sequence[Incident]) -> None:
        if incidents:
            rows.show(_COLUMNS, [_row(incident) for incident in incidents])
        else:
            typer.echo("no incidents" if everything else "no open incidents; --all also shows those that are over")

    rows.echo_records(chosen, as_json, show_records)


@app.command()
@of_a_version
def show(
    settings: Settings,
    incident: Id,
    as_json: AsJson = False,
) -> None:
    """Show one incident: where it may have begun, and the machines and metrics concerned."""
    it = stored.named(stored.incidents(settings), incident)
    if as_json:
        typer.echo(rows.of_record(it))
        return
    parts = {
        "message": it.message,
        "state": _state(it),
        "severity": f"{it.severity} ({it.severity_score})",
        "time": _time(it, duration_ms(settings.incidents.quiet)),
        "reported": _reported(it, stored.first_written(settings, it)),
        "novel": _novel(it),
        "note": it.note or "",
        "said by": f"{settings.version}; {hint(f'`newnormal prove {it.id}`')} computes it again and compares",
    }
    rows.block(f"incident {it.id}", parts)
    begun = [(c.entity, c.metric, f"{c.share:.0%}", c.reason) for c in it.candidates]
    begun += [("none of these", "", f"{it.unknown_share:.0%}", "")] if it.unknown_share is not None else []
    _table("where it may have begun", begun)
    _table("what changed in the logs", [_log_change(change) for change in it.log_changes])
    _table("what was done before", [_earlier(change) for change in it.changes])
    _table("machines", [(m.entity, iso(m.since), f"{m.series} series", f"{m.record_score}") for m in it.machines])
    _table(
        "metrics",
        [(m.metric, f"{m.machines} machine{'' if m.machines == 1 else 's'}", f"{m.record_score}") for m in it.metrics],
    )


@app.command()
@of_a_version
def acknowledge(
    settings: Settings,
    incident: Id,
    note: Note = "",
    by: By = None,
) -> None:
    """Say that you look after an incident. It stays acknowledged until it is resolved; see [bold]release[/bold]."""
    found = stored.named(stored.incidents(settings), incident)
    given = stored.acknowledge(settings, found, now_ms(), by=_account() if by is None else by, note=note)
    typer.echo(visible(f"incident {given.incident} is acknowledged by {given.by or 'nobody by name'}"))


@app.command()
@of_a_version
def release(
    settings: Settings,
    incident: Id,
    by: By = None,
) -> None:
    """Take an acknowledgement back: the incident is open again."""
    found = stored.named(stored.incidents(settings), incident)
    given = stored.acknowledge(settings, found, now_ms(), by=_account() if by is None else by, active=False)
    typer.echo(visible(f"the acknowledgement of incident {given.incident} is taken back"))


def _earlier(change: EarlierChange) -> tuple[str, ...]:
    return iso(change.since), change.entity or "the site", change.kind.replace("_", " "), change.message


def _row(incident: Incident) -> list[object]:
    machines = incident.machine_count or ""
    return [incident.id, _state(incident), incident.severity, incident.start, machines, incident.message]


def _novel(incident: Incident) -> str:
    """How much is novel; empty for the silence of an input, which is that of no machine and no series."""
    if not incident.machine_count:
        return ""
    return f"{incident.series_count} series, {incident.open_series} of them still; machines: {incident.machine_count}"


def _log_change(change: LogChange) -> tuple[str, ...]:
    more = f"and {change.machines - 1} more" if change.machines > 1 else ""
    return tuple(part for part in (change.entity, more, iso(change.since), change.example or change.template) if part)


def _state(incident: Incident) -> str:
    if incident.merged_into:
        return f"merged into {incident.merged_into}"
    if not incident.acknowledged_by:
        return incident.status
    status = incident.status if incident.status == "acknowledged" else f"{incident.status}, looked after"
    return f"{status} by {incident.acknowledged_by}"


def _time(incident: Incident, quiet: int) -> str:
    """When it was, and for how long: what is over for now has a length, though the incident is still open."""
    until = stored.novel_until(incident)
    if until is None:
        return f"since {iso(incident.start)}, and lasts"
    lasted = f"{iso(incident.start)} to {iso(until)}: lasted {duration(max(0, until - incident.start))}"
    return lasted if incident.end is not None else f"{lasted}; is resolved at {iso(until + quiet)} if nothing comes"


def _reported(incident: Incident, written: int | None) -> str:
    what = "its first novel window ended" if incident.machine_count else "it was noticed"
    ended = f"{what} at {iso(incident.opened)}"
    return ended if written is None else f"{ended}; first written at {iso(written)}"


def _table(title: str, lines: Sequence[Sequence[str]]) -> None:
    if lines:
        typer.echo(title)
        for line in lines:
            typer.echo(visible("  " + "  ".join(line)))


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in some containers
        return ""
