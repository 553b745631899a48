"""`newnormal acls`: lists the permissions that Kafka must give to the jobs, to operators and to agents."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.cli.options import AsJson, Namespace
from pipelines.contracts.settings import load


def acls(
    jobs: Annotated[
        list[str] | None, typer.Argument(help="Jobs, or `operators`, `agents`, `proofs`. Default: all jobs together.")
    ] = None,
    principal: Annotated[str, typer.Option(help="The user, as Kafka names it.")] = "newnormal",
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> None:
    """List the ACLs that are needed in a Kafka with an authorizer, as arguments of kafka-acls.sh."""
    from pipelines.jobs.links import LINKS
    from pipelines.runtime import acls as permissions  # the jobs load the models

    settings = load(namespace=namespace)
    others = {
        "operators": permissions.of_operators,
        "agents": permissions.of_agents,
        "proofs": permissions.of_proofs,
    }
    chosen = jobs or [name for name, link in LINKS.items() if link.runs(settings)]
    if unknown := [name for name in chosen if name not in LINKS and name not in others]:
        raise NewnormalError("JOB_UNKNOWN", ", ".join(unknown), "acls", ", ".join([*LINKS, *others]))
    named = [name for name in chosen if name in LINKS]
    found = set(permissions.needed(settings, named) if named else ())
    found |= {acl for name in chosen if name in others for acl in others[name](settings)}
    for acl in sorted(found):
        typer.echo(visible(json.dumps(asdict(acl)) if as_json else acl.command(principal)))
