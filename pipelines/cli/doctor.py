"""`newnormal doctor`: looks at the installation and at what runs, and says what is wrong and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from deploy.embedded import services
from deploy.embedded.endpoints import Endpoints
from engine.printing import cell
from engine.spec.errors import NewnormalError
from pipelines.cli.hints import hint
from pipelines.cli.options import Overrides, with_servers
from pipelines.contracts.settings import load
from pipelines.runtime import processes

if TYPE_CHECKING:
    from pipelines.doctor.examination import Examination

FINE, BROKEN = 0, 1
"""Exit codes: nothing is broken; something is."""
_STYLES = {"broken": "bold red", "at risk": "yellow", "note": "dim"}


@with_servers
def doctor(
    overrides: Overrides, as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False
) -> None:
    """Find what is wrong with the installation or a running pipeline, and say what to do. It changes nothing.

    It looks at this machine, the checkpoints, Kafka, Elasticsearch and the jobs; docs/troubleshooting.md lists what it
    finds. Exit code 0 if nothing is broken, 1 if something is.
    """
    examination = _examined(overrides)
    if as_json:
        findings = [finding.to_dict() for finding in examination.findings]
        status = "broken" if examination.broken else "findings" if findings else "ok"
        typer.echo(json.dumps({"status": status, "checks": examination.checks, "findings": findings}))
    else:
        _show(examination)
    raise typer.Exit(BROKEN if examination.broken else FINE)


def _examined(overrides: Overrides) -> Examination:
    # clients of both servers: only for this command
    from pipelines.doctor.context import Context
    from pipelines.doctor.examination import examine, examine_without

    try:
        settings = load(**overrides)
    except NewnormalError as error:
        return examine_without(error)
    if running := services.status(settings):
        kafka, url = settings.kafka.bootstrap, settings.elasticsearch.url
        settings = Endpoints(kafka or running.endpoints.bootstrap, url or running.endpoints.elasticsearch_url).settings(
            settings
        )
    context = Context(settings, tuple(processes.alive(settings)))
    try:
        return examine(context)
    finally:
        context.close()


def _show(examination: Examination) -> None:
    console = Console(highlight=False)
    if not examination.findings:
        console.print(f"{examination.checks} checks, nothing is wrong")
        return
    table = Table(show_lines=True)
    table.add_column("finding", no_wrap=True)
    table.add_column("what, where, and what to do", overflow="fold")
    for finding in examination.findings:
        severity = str(finding.kind.severity)
        code = cell(finding.code, _STYLES[severity]).append(f"\n{severity}")
        text = cell(finding.what).append("\n").append_text(cell(finding.where, "dim"))
        table.add_row(code, text.append("\n→ ").append_text(cell(hint(finding.do or finding.kind.do))))
    console.print(table)
    severities = [str(finding.kind.severity) for finding in examination.findings]
    counts = {severity: severities.count(severity) for severity in _STYLES}
    summary = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    console.print(f"{examination.checks} checks: {summary}")
