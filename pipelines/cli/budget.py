"""`newnormal budget`: tries another budget of false alarms. `pipelines.evaluation.budget_trial` does the work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.cli.options import Overrides, with_servers
from pipelines.cli.past import past
from pipelines.contracts.settings import load
from pipelines.query.control_topics import all_placements

if TYPE_CHECKING:
    from pipelines.evaluation.budget_trial import BudgetTrial

app = typer.Typer(help="Try how many false alarms there may be, before the settings say so.", no_args_is_help=True)
_NAMES = {"false_alarms": "detector.false_alarms", "false_pages": "incidents.false_pages", "score": "incidents.score"}
_WHEN = "ISO 8601, 'now', or a time from now such as -7d"


@app.callback()
def budget() -> None:
    """Holds the command `try`: a group of one would be the command itself."""


@app.command("try")
@with_servers
def try_(
    overrides: Overrides,
    false_alarms: Annotated[
        float | None, typer.Option(help="False alarms per series and month: detector.false_alarms.")
    ] = None,
    false_pages: Annotated[
        float | None, typer.Option(help="False incidents per week of the site: incidents.false_pages.")
    ] = None,
    score: Annotated[float | None, typer.Option(help="The least severity of an incident: incidents.score.")] = None,
    start: Annotated[str, typer.Option("--from", help=f"Try it from this time on: {_WHEN}.")] = "-30d",
    end: Annotated[str, typer.Option("--until", "--to", help=f"Try it until this time: {_WHEN}.")] = "now",
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object with all figures.")] = False,
) -> None:
    """Say which alarms and incidents another budget would have removed and added; nothing is written.

    Example: [bold]newnormal budget try --false-pages 0.5 --false-alarms 0.25[/bold]
    """
    from pipelines.evaluation.budget_trial import BEFORE, Budget, budget_trial
    from pipelines.evaluation.comparison.reading import spans
    from pipelines.evaluation.rule_trial.news import stored_news
    from pipelines.evaluation.rule_trial.stored import BUDGET

    given = {"false_alarms": false_alarms, "false_pages": false_pages, "score": score}
    asked = {name: value for name, value in given.items() if value is not None}
    if not asked:
        what, accepted = "budget try needs a budget", "--false-alarms, --false-pages or --score"
        raise NewnormalError("USAGE_INVALID", what, "budget try", accepted, "nothing was tried")
    now = now_ms()
    begin, until = past(start, end, now, "budget try")
    tried = Budget.of(load(**overrides, **{_NAMES[name]: value for name, value in asked.items()}))
    settings = running(load(**overrides))
    more = tried.false_alarms > settings.detector.false_alarms
    known = stored_news(settings, begin, until, BUDGET, score=0.0 if more else None, before=BEFORE)
    said, _ = spans(settings, (), ())
    found = budget_trial(tried, begin, until, known, settings, all_placements(settings), said)
    if as_json:
        typer.echo(json.dumps(found.figures()))
        return
    for line in _lines(found):
        typer.echo(visible(line))


def _lines(trial: BudgetTrial) -> Iterator[str]:
    from pipelines.cli.rule_trial import change_lines, counted, listed
    from pipelines.evaluation.rule_trial.changes import by_severity

    for name, setting in _NAMES.items():
        today, tried = (getattr(each, name) for each in trial.budgets)
        if today != tried:
            yield f"{setting} = {tried:g} (today {today:g})"
    yield f"from {iso(trial.start)} until {iso(trial.end)}"
    if trial.stored.verdicts_from > trial.start:
        yield f"  verdicts are stored from {iso(trial.stored.verdicts_from)} on; nothing is known of the time before"
    if trial.alarms is not None:
        yield "alarms of single metrics"
        yield from ("  " + line for line in change_lines(trial.alarms))
    written, again = trial.again
    yield f"incidents: {len(trial.grouped[0])}; of {written} that are stored, {again} are found again from verdicts"
    for word, some in (("removed", trial.removed), ("added", trial.added)):
        yield f"  {word}: {counted(len(some), 'incident')}{listed(by_severity(some))}"
        if some:
            true, false = trial.labelled(some, "true"), trial.labelled(some, "false_alarm")
            yield f"    by labels: {true} true, {false} false, {len(some) - true - false} without a label"
    examples = trial.examples
    if examples:
        yield f"examples, {len(examples)} of {len(trial.removed) + len(trial.added)}:"
    for outcome, it in examples:
        label = {"true": ", labelled true", "false_alarm": ", labelled a false alarm"}.get(
            trial.labels.get(it.id, ""), ""
        )
        yield f"  {outcome}: {it.severity} ({it.severity_score}) {it.id} at {iso(it.opened)}{label}: {it.message}"
