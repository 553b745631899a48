"""`newnormal retention`: deletes what is older than the settings say, or shows what would go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from dashboards.quantities import size
from deploy.embedded.services import running
from engine.clock import now_ms
from engine.explain.printing import cell
from engine.spec.duration import iso
from pipelines.cli.options import Overrides, with_servers
from pipelines.contracts.settings import load

if TYPE_CHECKING:
    from pipelines.retention.retention import Old


@with_servers
def retention(
    overrides: Overrides,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
) -> None:
    """Delete what is older than the settings say: indices, days of the archive, and late records in Kafka.

    The settings are [bold]retention.indices[/bold], [bold]retention.archive[/bold] and [bold]retention.late[/bold]; a
    running pipeline does this regularly by itself. What a running replay or a savepoint needs stays, and the list says
    so.
    """
    from pipelines.retention.retention import Retention
    from pipelines.versions.registry import Registry

    settings = running(load(**overrides))
    policy, console = settings.retention, Console(highlight=False)
    late = policy.late or settings.kafka.retention
    told = {"indices": policy.indices, "archive": policy.archive, "late records": late}
    said = {what: f"{kept} are kept" if kept else "no limit" for what, kept in told.items()}
    console.print(", ".join(f"{what}: {text}" for what, text in said.items()))
    retaining = Retention(settings, Registry(settings))
    found = retaining.find(now_ms())
    if found:
        console.print(_table(found))
    going = [old for old in found if not old.needed]
    total = f"{len(going)} of {len(found)}, {size(sum(old.size for old in going))}"
    if dry_run:
        console.print(f"would delete {total}" if found else "nothing is too old")
        return
    for topic in retaining.late_topics():
        console.print(f"topic {topic}: Kafka keeps its messages for {late}")
    retaining.delete(found)
    console.print(f"deleted {total}" if found else "nothing is too old")


def _table(listed: list[Old]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("what", "name", "event times until", "size", "stays, because"):
        table.add_column(column, overflow="fold")
    for old in listed:
        until = iso(old.end)[:16].replace("T", " ")
        table.add_row(cell(old.kind), cell(old.name), cell(until), cell(size(old.size)), cell(old.needed))
    return table
