"""`newnormal prove`: computes an incident again from the log, and says whether the data say the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.incidents import Id
from pipelines.cli.options import Overrides, ShownVersion, with_servers
from pipelines.contracts.settings import load
from pipelines.contracts.version_names import FIRST

if TYPE_CHECKING:
    from pipelines.proof.account import Account
    from pipelines.proof.comparison import Comparison
    from pipelines.proof.proving import Basis

_DIFFERENT, _NOT_POSSIBLE = 1, 3
_SHOWN = 5
"""How many differences are shown."""


@with_servers
def prove(
    overrides: Overrides,
    incident: Id,
    version: ShownVersion = None,
    indices: Annotated[
        bool,
        typer.Option("--indices", help="Take what was said from Elasticsearch, which may keep it longer than Kafka."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say by which offsets, version and settings it would be computed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object with all that was found.")] = False,
) -> None:
    """Compute an incident and its verdicts again from the log, and compare them bit for bit with what was said.

    The jobs run in a version of their own, from the nearest savepoint or the beginning of what is kept, which is
    removed at the end; what runs is not touched. The exit code is 0 if it is proven, 1 if something differs, and 3 if
    it cannot be proven, as what it rests on was deleted.

    Example: [bold]newnormal prove 3f2a[/bold]
    """
    from deploy.embedded.services import embedded
    from pipelines.proof import account, proving
    from pipelines.versions.promotion import shown_version
    from pipelines.versions.registry import Registry

    settings = load(**overrides)
    with embedded(settings, elasticsearch=indices or version is None) as servers:
        there = servers.settings(settings)
        registry = Registry(there)
        known = registry.get(version or shown_version(there) or FIRST)
        its = servers.settings(known.load_as_run(**overrides))
        said = account.read_documents(its, incident) if indices else account.read(its, incident)
        from_base = registry.get(known.base) if known.forked and known.base else known
        base = servers.settings(from_base.load_as_run(**overrides))
        try:
            basis = proving.basis(said, known, its, base)
        except NewnormalError as error:
            if error.code != "PROOF_INPUT_DELETED":
                raise
            _not_possible(said, error, as_json)
            raise typer.Exit(_NOT_POSSIBLE) from None
        if not as_json:
            _say(said, basis)
        if dry_run:
            if as_json:
                typer.echo(json.dumps(_plain(said, basis)))
            return
        comparison = proving.prove(said, basis, registry, servers.settings, dict(overrides), now_ms())
    if as_json:
        typer.echo(json.dumps(_plain(said, basis) | _result(comparison)))
    else:
        _show(comparison)
    if not comparison.proven:
        raise typer.Exit(_DIFFERENT)


def _say(said: Account, basis: Basis) -> None:
    """What is proven, and by what."""
    run, offsets = basis.run, basis.beginning.offsets
    parts = {
        "message": said.incident.message,
        "version": basis.version.name,
        "settings": f"release {run.release}, those of the start at {iso(run.since)}" if run else "of the last start",
        "from": str(basis.beginning),
        "offsets": ", ".join(f"{topic}/{part} {first}" for (topic, part), first in sorted(offsets.items())),
        "until": f"{iso(basis.until)}, when the last of it was said",
    }
    rows.block(f"incident {said.incident.id}", parts)
    for note in basis.notes():
        typer.echo(visible(f"note: {note}"))


def _show(comparison: Comparison) -> None:
    columns = {"what": False, "compared": True, "equal": True, "equal but for rounding": True}
    rows.show(columns, [list(row) for row in comparison.rows], "computed again, and compared")
    if comparison.proven:
        close = sum(row.rounded for row in comparison.rows)
        rounding = f"; {close} differ by the rounding of sums, at most 1e-9 of their size" if close else ""
        typer.echo(f"proven: the data say the same{rounding}")
        return
    first, *others = comparison.differences
    typer.echo(visible(f"different: {first}"))
    for each in others[: _SHOWN - 1]:
        typer.echo(visible(f"  also: {each}"))
    if more := len(others) - _SHOWN + 1:
        typer.echo(f"  and {more} more" if more > 0 else "")


def _not_possible(said: Account, error: NewnormalError, as_json: bool) -> None:
    answer = {"incident": said.incident.id, "proven": None, "code": error.code, "why": error.what}
    if as_json:
        typer.echo(json.dumps(answer | {"accepted": error.accepted}))
        return
    typer.echo(visible(f"cannot be proven ({error.code}): {error.what}"))
    typer.echo(visible(f"  what can: {error.accepted}"))


def _plain(said: Account, basis: Basis) -> dict[str, Any]:
    found = basis.beginning
    offsets: dict[str, dict[str, int]] = {}
    for (topic, partition), first in sorted(found.offsets.items()):
        offsets.setdefault(topic, {})[str(partition)] = first
    return {
        "incident": said.incident.id,
        "version": basis.version.name,
        "release": basis.run.release if basis.run else None,
        "settings": basis.version.ran | basis.version.settings,
        "job": found.job,
        "savepoint": found.savepoint.name if found.savepoint else None,
        "offsets": offsets,
        "until": iso(basis.until),
        "notes": list(basis.notes()),
    }


def _result(comparison: Comparison) -> dict[str, Any]:
    return {
        "proven": comparison.proven,
        "compared": [row._asdict() for row in comparison.rows],
        "differences": [each._asdict() for each in comparison.differences],
    }
