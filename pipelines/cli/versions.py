"""`newnormal versions`, `promote` and `retire`: shows the versions of the chain, and decides which one readers see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import cell
from engine.spec.duration import iso
from pipelines.cli.hints import hint
from pipelines.cli.option_set import option_set
from pipelines.cli.options import Overrides, Yes, ask, with_servers
from pipelines.contracts.quantities.cells import size
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.links import CHAIN

if TYPE_CHECKING:
    from pipelines.versions.overview import VersionView
    from pipelines.versions.registry import Registry

Name = Annotated[str, typer.Argument(help="Name of the version, e.g. v2.")]


class Opened(NamedTuple):
    """The settings with the addresses of servers that run, and the versions."""

    settings: Settings
    registry: Registry


@with_servers
def _opened(overrides: Overrides) -> Opened:
    from pipelines.versions.registry import Registry

    settings = running(load(**overrides))
    return Opened(settings, Registry(settings))


_with_versions = option_set("opened", _opened)


@_with_versions
def versions(
    opened: Opened,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object per version.")] = False,
) -> None:
    """List the versions: settings, jobs, offsets, lag, size, and which one readers see.

    A version is a set of jobs with topics, indices and state of its own; v1 is there from the start, and
    [bold]newnormal replay[/bold] makes others. The settings are those that differ from the version that it was made
    from; of v1, from the defaults. Offsets, and all settings that decide results, are in the output of --json.
    """
    from pipelines.versions.overview import view
    from pipelines.versions.used import differing

    settings, registry = opened
    known = registry.all()
    views = [view(version, settings) for version in known.values()]
    differs = [differing(version, known) for version in known.values()]
    if as_json:
        for each, settings_that_differ in zip(views, differs, strict=True):
            typer.echo(json.dumps(each.to_dict() | {"differs": settings_that_differ}))
        return
    console = Console(highlight=False)
    console.print(_table(views, differs))


@_with_versions
def promote(opened: Opened, name: Name, yes: Yes = False) -> None:
    """Make readers see a version: console, dashboards and notifications follow at once.

    One alias is switched in one step, so a reader sees the old version or the new one, never both or neither. What runs
    goes on. [bold]newnormal promote v1[/bold] is the way back.
    """
    from pipelines.versions.overview import view
    from pipelines.versions.promotion import promote as switch

    settings, registry = opened
    version = registry.get(name)
    seen = view(version, settings)
    if version.end is not None:
        ask(f"{name} ends at {iso(version.end)}: readers would see nothing later. Promote it?", yes)
    elif not seen.pids:
        typer.echo(hint(f"no process of this machine runs {name}; `newnormal run --as {name}` does"))
    if seen.lag and not version.ended:
        typer.echo(f"{name} has {seen.lag:,} messages to read; its newest verdicts come when it has read them")
    switch(version, registry.all().values(), settings, now_ms())
    typer.echo(f"{settings.alias} shows {name} now, {seen.documents or 0:,} documents")


@_with_versions
def retire(opened: Opened, name: Name, yes: Yes = False) -> None:
    """Delete a version: its topics, indices and checkpoints. What another version reads stays.

    Its jobs must not run, and readers must see another version. Savepoints are kept.
    """
    from pipelines.versions import retirement

    settings, registry = opened
    plan = retirement.planned(registry.get(name), registry.all().values(), settings)
    typer.echo(f"jobs:        {', '.join(plan.freed)}")
    typer.echo(f"topics:      {', '.join(plan.topics)}")
    if plan.indices:
        typer.echo(f"indices:     {', '.join(plan.indices)}")
    typer.echo(f"checkpoints: {settings.of(plan.version.names).folder('checkpoints')}")
    if plan.kept:
        typer.echo(f"kept, as other versions read what they write: {', '.join(plan.kept)}")
    ask(f"Delete these of {name}?", yes)
    retirement.retire(plan, registry, settings)
    rest = hint(f"; `newnormal run --as {name}` runs {', '.join(plan.kept)}") if plan.kept else ""
    typer.echo(f"{name} is retired{rest}")


def _jobs(names: Sequence[str]) -> str:
    """The jobs of a version, short: the first and the last, if it has all jobs between them that a replay runs.

    >>> _jobs(("detector", "log_detector", "incidents", "sink"))
    'detector to sink'
    >>> _jobs(("detector", "sink"))
    'detector, sink'
    """
    replayed = [link.name for link in CHAIN if link.replayed]
    own = [name for name in replayed if name in names]
    whole = len(own) > 2 and own == replayed[replayed.index(own[0]) : replayed.index(own[-1]) + 1]
    return f"{own[0]} to {own[-1]}" if whole else ", ".join(names)


def _table(views: list[VersionView], differs: list[dict[str, Any]]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("version", "shown", "from", "jobs, settings, times", "lag", "documents", "size", "runs"):
        table.add_column(column, overflow="fold", no_wrap=column not in ("jobs, settings, times", "runs"))
    for view, different in zip(views, differs, strict=True):
        version = view.version
        bounds = [iso(at)[:16].replace("T", " ") if at is not None else "" for at in (version.start, version.end)]
        settings = [f"{name} = {value}" for name, value in different.items()]
        times = [" to ".join(bounds).strip()] if any(bounds) else []
        shown = "?" if view.shown is None else "yes" if view.shown else ""
        table.add_row(
            cell(version.name, "bold"),
            cell(shown, "green"),
            cell(version.base or ""),
            Text("\n").join(cell(part) for part in (_jobs(version.jobs), *settings, *times)),
            cell("–" if version.ended else f"{view.lag:,}"),
            cell("?" if view.documents is None else f"{view.documents:,}"),
            cell(size((view.index_bytes or 0) + sum(job.state_bytes for job in view.jobs))),
            cell(", ".join(f"process {pid}" for pid in view.pids) or ("ended" if version.ended else "no")),
        )
    return table
