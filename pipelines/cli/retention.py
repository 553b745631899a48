"""`newnormal retention`: deletes what is older than the settings say, or shows what would go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.spec.duration import iso
from pipelines.cli import rows
from pipelines.cli.options import Overrides, with_servers
from pipelines.contracts.quantities.cells import size
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
    limits = {"indices": policy.indices, "archive": policy.archive, "late records": late}
    console.print(", ".join(f"{kind}: {f'{kept} are kept' if kept else 'no limit'}" for kind, kept in limits.items()))
    retaining = Retention(settings, Registry(settings))
    too_old = retaining.find(now_ms())
    if too_old:
        console.print(_table(too_old))
    going = [old for old in too_old if not old.needed]
    total = f"{len(going)} of {len(too_old)}, {size(sum(old.size for old in going))}"
    if dry_run:
        console.print(f"would delete {total}" if too_old else "nothing is too old")
        return
    for topic in retaining.late_topics():
        console.print(f"topic {topic}: Kafka keeps its messages for {late}")
    retaining.delete(too_old)
    console.print(f"deleted {total}" if too_old else "nothing is too old")


def _table(listed: list[Old]) -> Table:
    cells = [(old.kind, old.name, iso(old.end)[:16].replace("T", " "), size(old.size), old.needed) for old in listed]
    return rows.table(("what", "name", "event times until", "size", "stays, because"), cells)
