"""`newnormal compare`: shows how two versions of the chain judge differently, and which of them is right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from engine.clock import now_ms
from engine.printing import cell
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.options import Overrides, with_servers
from pipelines.cli.output_files import file_to_write
from pipelines.contracts.settings import load

if TYPE_CHECKING:
    from pipelines.evaluation.comparison.comparison import Comparison

_ROWS = 12
_OWN_WORDS = {"new": "new", "gone": "gone", "changed": "other kind", "moved": "moved", "same": "same"}


@with_servers
def compare(
    overrides: Overrides,
    first: Annotated[str, typer.Argument(help="Name of a version, e.g. v1.")],
    second: Annotated[str, typer.Argument(help="Name of another version, e.g. v2.")],
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            help="Files of ground truth or of labels, as for newnormal evaluate. Default: the topics groundtruth and "
            "labels."
        ),
    ] = None,
    start: Annotated[str | None, typer.Option("--from", help="Compare no earlier windows: ISO 8601, or -2h.")] = None,
    end: Annotated[str | None, typer.Option("--until", help="Compare no later windows: ISO 8601, or -1h.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(callback=file_to_write, help="Also write a page with plots; it needs no other file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object with all figures.")] = False,
    indices: Annotated[
        bool, typer.Option("--indices", help="Read the verdicts from Elasticsearch instead of Kafka.")
    ] = False,
) -> None:
    """Show how two versions differ: incidents and messages, new, gone and changed alarms, precision and recall.

    Only event times that both versions have judged are compared. An alarm that only begins or ends at another window is
    not new.

    Example: [bold]newnormal compare v1 v2 --html report.html[/bold]
    """
    from deploy.embedded.services import running
    from pipelines.evaluation.comparison.between import between
    from pipelines.query.control_topics import instant

    now = now_ms()
    bounds = instant(start, now, "--from"), instant(end, now, "--until")
    if bounds[0] is not None and bounds[1] is not None and bounds[0] >= bounds[1]:
        what = f"--from {start} is not before --until {end}"
        accepted, now_ = "an end after the start", "nothing was compared"
        raise NewnormalError("USAGE_INVALID", what, "newnormal compare", accepted, now_)
    settings = running(load(**overrides), elasticsearch=indices)
    comparison, unreadable = between((first, second), settings, overrides, labels or [], bounds, indices=indices)
    notes = Console(stderr=True, soft_wrap=True)
    if unreadable:
        notes.print(cell(f"{unreadable} messages could not be read and are left out"))
    if html is not None:
        from pipelines.evaluation.comparison.page import page  # Matplotlib: only for the page

        html.write_text(page(comparison, now), encoding="utf-8")
        notes.print(cell(f"the page is in {html}"))
    if as_json:
        typer.echo(json.dumps(comparison.figures()))
    else:
        _show(comparison)


def _show(comparison: Comparison) -> None:
    from pipelines.evaluation.comparison.alarms import counts  # Polars: only for this command
    from pipelines.evaluation.comparison.comparison import GROUPS
    from pipelines.evaluation.comparison.words import called, compared, figure, headline, incidents, quality

    console, names = Console(highlight=False), [version.name for version in comparison.versions]

    def show(title: str, heads: list[str], figures: Iterable[Sequence[object]]) -> None:
        cells = [[*map(figure, row)] for row in figures]
        console.print(rows.table(heads, cells, heads[1:], title=title, title_justify="left"))

    summary, numbers, only = incidents(comparison)
    console.print(cell(summary, "bold"))
    if numbers:
        show("incidents", ["", *names], numbers)
    for each in only:
        console.print(cell(f"- {each}"))
    console.print(cell(headline(comparison), "bold"))
    for sentence in compared(comparison):
        console.print(cell(f"- {sentence}"))
    for by, word in GROUPS.items():
        table = counts(comparison.alarms, by)
        if table.height:
            figures = [[called(str(row[0])) if by == "kind" else row[0], *row[1:]] for row in table.head(_ROWS).rows()]
            title = f"alarms by {word}" + (f", the first {_ROWS} of {table.height}" if table.height > _ROWS else "")
            show(title, [word, *names, *_OWN_WORDS.values()], figures)
    figures, notes = quality(comparison)
    show("which version is right", ["", *names], figures)
    for note in notes:
        console.print(cell(note))
    for at, difference in enumerate(comparison.differences, 1):
        alarm = difference.alarm
        console.print(cell(f"{at}. {_OWN_WORDS[alarm['outcome']]}: {alarm['metric']} of {alarm['entity']}", "bold"))
        for reason in difference.reasons:
            console.print(cell(f"   {reason}"))
