"""`newnormal why-not`: walks from the machine to the person, and says why nobody was alerted."""

from __future__ import annotations

import json
import re
from typing import Annotated

import typer

from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import iso
from pipelines.cli.incidents import of_a_version
from pipelines.contracts.settings import Settings


@of_a_version
def why_not(
    settings: Settings,
    machine: Annotated[str, typer.Argument(help="The machine, as `host.name`.")],
    metric: Annotated[str, typer.Argument(help="The metric, with the labels if the series has some.")],
    time: Annotated[str, typer.Argument(help="When it happened: ISO 8601, or a time from now such as -2h.")],
    within: Annotated[str, typer.Option(help="For how long from then on it is looked for; at most 1d.")] = "5m",
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object.")] = False,
) -> None:
    """Say why nobody was alerted: did the values arrive, in time, were they unusual, muted, grouped, told?

    It walks the steps of docs/why-no-alert.md, and ends at the one that answers, with the numbers and the command that
    shows them.

    Example: [bold]newnormal why-not web-1 cpu.util 2026-11-29T10:14Z[/bold]
    """
    from pipelines.why_not.asking import ask, span
    from pipelines.why_not.walk import as_lines, spoken

    start, end = span(time, within, now_ms())
    walked = ask(settings, machine, metric, start, end)
    if as_json:
        steps = [
            {"step": each.step.name, "question": each.step.question, "found": each.words, "ended": each.ended,
             "ask": each.step.commands(machine, metric)}
            for each in walked.findings
        ]  # fmt: skip
        answer = walked.answer.step.name if walked.answer else None
        typer.echo(json.dumps({"from": iso(start), "until": iso(end), "ended_at": answer, "steps": steps}))
        return
    for number, question, found, asked in as_lines(walked, machine, metric):
        typer.echo(visible(f"{number:>2} {question} {found}"))
        typer.echo(visible(f"     {re.sub('`', '', asked)}"))
    typer.echo(visible(spoken(walked, end - start)))
