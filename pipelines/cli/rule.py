"""`newnormal rule`: operators give the detector rules in advance. `pipelines.query.control_topics` does the work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import polars as pl
import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import iso
from pipelines.cli import rows
from pipelines.cli.option_set import option_set
from pipelines.cli.options import AsJson, Overrides, with_kafka, with_servers
from pipelines.cli.past import past
from pipelines.cli.rule_outlook import doubts, limits, no_match, outlook_lines
from pipelines.cli.seen import warn_if_unseen
from pipelines.contracts.records import Rule
from pipelines.contracts.records.rule import EFFECTS
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.detectors.rules_in_force import begins, standing
from pipelines.query import control_topics as operators
from pipelines.query.given_rule import GivenRule, given
from pipelines.query.recent_windows import recent_windows
from pipelines.query.rule_outlook import outlook

_HOW = "in the unit of the metric, or 95%, or 20G"
app = typer.Typer(
    help="Give the detector rules in advance: maintenance, thresholds, directions, least changes, holidays.",
    no_args_is_help=True,
)
_WHEN = "ISO 8601, 'now', or a time from now such as +2h or -10m"
Name = Annotated[str, typer.Argument(help="Name of the rule; a rule of the same name is replaced.")]
At = Annotated[str, typer.Option(help=f"Event time of the command; it has no effect before: {_WHEN}.")]


def _options(
    *,
    entity: Annotated[str, typer.Option(help="The machines, as a glob of * and ?.")] = "*",
    metric: Annotated[
        str, typer.Option(help="The metrics, as a glob; * also matches _machine, the joined verdict.")
    ] = "*",
    dates: Annotated[
        list[str] | None, typer.Option("--date", help="The rule applies only on this day, YYYY-MM-DD; repeatable.")
    ] = None,
    times: Annotated[
        str,
        typer.Option(help="The rule applies only at these times of the week: 02:00-03:00, mon-fri 08:00-18:00, sat."),
    ] = "",
    timezone: Annotated[str, typer.Option(help="IANA name of the time zone of the days and times.")] = "UTC",
    above: Annotated[str | None, typer.Option(help=f"The rule applies only to values above this one, {_HOW}.")] = None,
    below: Annotated[str | None, typer.Option(help=f"The rule applies only to values below this one, {_HOW}.")] = None,
    skip_result: Annotated[bool, typer.Option("--skip-result", help="Do not report the windows.")] = False,
    skip_learning: Annotated[bool, typer.Option("--skip-learning", help="Do not learn from the windows.")] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Report the windows as an anomaly, whatever their score.")
    ] = False,
    weekend: Annotated[bool, typer.Option("--weekend", help="Treat the windows as those of a weekend.")] = False,
    only: Annotated[
        str | None, typer.Option(help="Report only values above (up) or below (down) the typical one.")
    ] = None,
    min_change: Annotated[
        str | None, typer.Option(help=f"Report only values that differ from the typical one by this or more, {_HOW}.")
    ] = None,
    min_change_share: Annotated[
        str | None, typer.Option(help="The same as --min-change, as a share of the typical value: 0.1 or 10%.")
    ] = None,
    store: Annotated[
        bool, typer.Option("--store", help="Write the verdicts on all windows, also with detector.emit = context.")
    ] = False,
) -> GivenRule:
    """The fields of a rule that the options give.

    Raises:
        NewnormalError: ``RULE_INVALID`` if a limit is none.
    """
    fields = {
        "entity": entity,
        "metric": metric,
        "dates": dates,
        "times": times,
        "timezone": timezone,
        "skip_result": skip_result,
        "skip_learning": skip_learning,
        "report": report,
        "weekend": weekend,
        "only": only,
        "store": store,
    }
    limits = {"above": above, "below": below, "min_change": min_change, "min_change_share": min_change_share}
    return given(fields, limits)


defines_a_rule = option_set("options", _options)
"""A decorator: gives a command the options of a rule; the command gets a `GivenRule` as its argument ``options``."""


@app.command()
@defines_a_rule
@with_kafka
def add(
    overrides: Overrides,
    options: GivenRule,
    name: Name,
    start: Annotated[
        str | None, typer.Option("--from", help=f"The rule is in force from this time on: {_WHEN}. Default: --at.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--until", help=f"The rule is in force until this time: {_WHEN}. Default: until it is removed."),
    ] = None,
    note: Annotated[str, typer.Option(help="Your reason for the rule.")] = "",
    at: At = "now",
) -> None:
    """Add a rule; one of the same name is replaced from the start of the new one on, or at once if it has not begun.

    Maintenance:  [bold]newnormal rule add upgrade --entity 'db-*' --until +2h --skip-result --skip-learning[/bold]

    Threshold:    [bold]newnormal rule add disk-full --metric 'disk.used_ratio*' --above 95% --report[/bold]

    Direction:    [bold]newnormal rule add slower --metric 'http.latency*' --only up --min-change-share 10%[/bold]

    Holiday:      [bold]newnormal rule add xmas --date 2026-12-25 --timezone Europe/Stockholm --weekend[/bold]
    """
    settings, now = load(**overrides), now_ms()
    begin = operators.instant(start, now, "--from")
    when = operators.instant(at, now, "--at")
    fields = options.fields | {
        "id": name,
        "time": begin if at == "now" and begin is not None and begin < now else when,
        "start": begin,
        "end": operators.instant(end, now, "--until"),
        "note": note,
    }
    rule, settings = operators.checked(Rule, fields, settings, now), running(settings, elasticsearch=False)
    windows = recent_windows(settings, rule.entity, rule.metric)
    options.refuse_percentages(windows)
    earlier = [old for old in operators.rules(settings) if old.id == rule.id]
    operators.write(settings, rule)
    confirm(rule)
    for span in standing((begins(one), one) for one in (rule, *earlier)):
        if span.rule != rule and span.end > now:
            typer.echo(visible(f"until then, or until it is removed, this stays in force: {in_words(span.rule)}"))
    _foresee(rule, windows, settings)


@app.command("try")
@defines_a_rule
@with_servers
def try_(
    overrides: Overrides,
    options: GivenRule,
    name: Name,
    start: Annotated[str, typer.Option("--from", help=f"Try the rule from this time on: {_WHEN}.")] = "-30d",
    end: Annotated[str, typer.Option("--until", "--to", help=f"Try the rule until this time: {_WHEN}.")] = "now",
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object with all figures.")] = False,
) -> None:
    """Say what a rule would have removed and added, from what is stored; nothing is written.

    The rule is tried as if it had been in force all the time, in the place of one of the same name.

    Example: [bold]newnormal rule try slower --metric 'http.latency*' --only up --min-change-share 10%[/bold]
    """
    from pipelines.cli.rule_trial import trial_lines
    from pipelines.evaluation.rule_trial.past import tried

    settings, now = load(**overrides), now_ms()
    begin, until = past(start, end, now, "rule try")
    rule = operators.checked(Rule, options.fields | {"id": name, "time": begin}, settings, now)
    settings = running(settings)
    if options.percentages:
        options.refuse_percentages(recent_windows(settings, rule.entity, rule.metric))
    found = tried(rule, begin, until, settings)
    if as_json:
        typer.echo(json.dumps(found.figures()))
        return
    typer.echo(visible(f"rule {rule.id}: {_effect(rule)} for {_scope(rule)}"))
    for line in trial_lines(found):
        typer.echo(visible(line))


@app.command()
@with_servers
def propose(
    overrides: Overrides,
    start: Annotated[str, typer.Option("--from", help=f"Look at alarms from this time on: {_WHEN}.")] = "-30d",
    end: Annotated[str, typer.Option("--until", "--to", help=f"Look at alarms until this time: {_WHEN}.")] = "now",
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object with all figures.")] = False,
) -> None:
    """Propose rules by what alarms that were labelled false have in common, and no true one; nothing is written.

    Each comes with its trial, as of [bold]newnormal rule try[/bold], and with the command that adds it.
    """
    from pipelines.cli.rule_trial import proposal_lines
    from pipelines.evaluation.rule_proposals.past import proposed

    now = now_ms()
    begin, until = past(start, end, now, "rule propose")
    found = proposed(begin, until, running(load(**overrides)), now)
    if as_json:
        typer.echo(json.dumps(found.figures()))
        return
    for line in proposal_lines(found):
        typer.echo(visible(line))


@app.command("list")
@with_kafka
def list_(overrides: Overrides, as_json: AsJson = False) -> None:
    """List the rules that are not removed: what they apply to, when, and what they do.

    A rule that is replaced later is listed too while it is in force, with the instant at which the new one begins.
    """
    settings = running(load(**overrides), elasticsearch=False)
    rows.echo_records(operators.rules_in_force(settings, now_ms()), as_json, show)


def show(rules: Sequence[Rule]) -> None:
    """Prints rules, each as a block of lines."""
    for rule in rules:
        until = "until it is removed" if rule.end is None else f"until {iso(rule.end)}"
        force = f"from {iso(rule.start or rule.time)} {until}"
        rows.block(rule.id, {"applies to": _scope(rule), "in force": force, "effect": _effect(rule), "note": rule.note})
    if not rules:
        typer.echo("no rules")


@app.command()
@with_kafka
def remove(overrides: Overrides, name: Name, at: At = "now") -> None:
    """Remove a rule: from --at on it is no longer in force."""
    settings = running(load(**overrides), elasticsearch=False)
    now = now_ms()
    record = operators.withdrawn(settings, name, operators.instant(at, now, "--at") or 0, now)
    operators.write(settings, record)
    typer.echo(visible(f"rule {name} is removed from {iso(record.time)} on"))


def _foresee(rule: Rule, windows: pl.DataFrame, settings: Settings) -> None:
    """Says what a rule does now. A rule that no series matches may be about a log, or about a machine that is gone."""
    found = outlook(rule, windows)
    lines, warnings = outlook_lines(rule, found, windows), doubts(rule, found)
    if not lines:
        every = recent_windows(settings)
        lines = [no_match(rule, every["metric"].unique().sort().to_list() if every.height else [])]
        warn_if_unseen(settings, rule.entity, rule.metric)
    for line in filter(None, lines):
        typer.echo(visible(line))
    for warning in warnings:
        typer.echo(f"warning: {visible(warning)}", err=True)


def confirm(rule: Rule) -> None:
    """Prints a rule that was just written."""
    typer.echo(visible(f"rule {rule.id}: {in_words(rule)}"))


def in_words(rule: Rule) -> str:
    """What a rule does, for what and when."""
    begin = iso(max(rule.time, rule.start or rule.time))
    until = "it is removed" if rule.end is None else iso(rule.end)
    return f"{_effect(rule)} for {_scope(rule)}, from {begin} until {until}"


def _scope(rule: Rule) -> str:
    whom = [f"{rule.metric} of {rule.entity}"]
    parts = [f"values {limits(rule)}"] if limits(rule) else []
    times = [f"{rule.times} {rule.timezone}"] if rule.times else []
    return ", ".join([*whom, *parts, *times, *rule.dates])


def _effect(rule: Rule) -> str:
    given = ((name, getattr(rule, name)) for name in EFFECTS)
    return ", ".join(
        name if value is True else f"{name} {value}" for name, value in given if value not in (None, False)
    )
