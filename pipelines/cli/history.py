"""`newnormal import`: puts the history that exists before the log, so that a replay knows it. `pipelines.history`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import duration_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.cli.input_commands import progress_bar, saying, stopping
from pipelines.cli.option_set import option_set
from pipelines.cli.options import Overrides, Yes, ask, with_kafka, with_namespace
from pipelines.contracts.quantities.cells import size
from pipelines.contracts.quantities.words import duration
from pipelines.contracts.settings import Settings, load
from pipelines.history.login import Login, option

if TYPE_CHECKING:
    from pipelines.history.estimate import Estimate, Series
    from pipelines.history.importing import HistorySource
    from pipelines.history.intake import Intake

app = typer.Typer(
    help="Import the history that you have, so that a replay knows the hours of the week on the first evening; see "
    "docs/first-week.md.",
    no_args_is_help=True,
)

_WHEN = "ISO 8601, 'now', or a time from now such as -30d"
_SHOWN = 3

From = Annotated[str, typer.Option("--from", help=f"First event time: {_WHEN}.")]
To = Annotated[
    str | None,
    typer.Option("--to", help=f"Event time at which history ends: {_WHEN}. Default: where the log begins, else now."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be imported, and what that takes.")]
_PANEL = "How the server lets in (see docs/security.md)"


def _login_option(*names: str, help: str) -> object:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL)


def _login(
    *,
    user: Annotated[str, _login_option("--user", help="User of basic authentication.")] = "",
    password_file: Annotated[str, _login_option("--password-file", help="File with the password, one line.")] = "",
    ca_file: Annotated[str, _login_option("--ca-file", help="Trusted authorities, PEM. Default: the system's.")] = "",
    certificate_file: Annotated[str, _login_option("--certificate-file", help="Certificate for mutual TLS, PEM.")] = "",
    key_file: Annotated[str, _login_option("--key-file", help="Its key, PEM.")] = "",
) -> Login:
    return Login(
        user=user, password_file=password_file, ca_file=ca_file, certificate_file=certificate_file, key_file=key_file
    )


with_login = option_set("login", _login)


@app.command()
@with_kafka
@with_login
def prometheus(
    overrides: Overrides,
    login: Login,
    url: Annotated[str, typer.Argument(help="Address before /api/v1, e.g. http://mimir:8080/prometheus.")],
    match: Annotated[list[str], typer.Option("--match", help="Selector of series; repeatable.")],
    begin: From = "-30d",
    end: To = None,
    step: Annotated[
        str | None,
        typer.Option(help="One value in each such time, e.g. 1m, in place of the samples as they are stored."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="name=value that Prometheus adds in remote write (external_labels); repeatable."),
    ] = None,
    token_file: Annotated[str, _login_option("--token-file", help="File with a bearer token, one line.")] = "",
    header: Annotated[
        list[str] | None,
        _login_option("--header", help="'Name: value', e.g. 'X-Scope-OrgID: team', or 'Name: @file'; repeatable."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Import from the HTTP API of Prometheus, VictoriaMetrics, Thanos or Mimir.

    Series get the names and kinds that they have when they come through remote write. The newest samples come first; an
    import that was interrupted goes on where it stopped when the same command is given again.

      newnormal import prometheus http://prometheus:9090 --match '{job="node"}' --from -30d --dry-run
    """
    from dataclasses import replace

    from pipelines.history.http_api import HttpApi
    from pipelines.history.prometheus import PrometheusHistory, external

    login = replace(login, token_file=token_file, headers=tuple(header or ()))
    milliseconds = None if step is None else max(1, duration_ms(step, "--step"))
    labels = external(label or [])
    say = Console(stderr=True, highlight=False)
    with stopping() as stop, closing(HttpApi(url, login, stop, saying(say))) as api:
        source = PrometheusHistory(api, match, milliseconds, labels)
        settings = load(**overrides)
        if milliseconds and milliseconds > settings.window.step_ms:
            saying(say)(
                f"--step {step} is longer than the windows of {settings.window.step} (window.size): most windows will "
                "have no sample, and live ones will; better no --step, or a version with longer windows"
            )
        _import(settings, source, begin, end, dry_run, stop, say)


@app.command()
@with_kafka
@with_login
def elasticsearch(
    overrides: Overrides,
    login: Login,
    url: Annotated[str, typer.Argument(help="http://host:port of the Elasticsearch that has the history.")],
    index: Annotated[str, typer.Argument(help="Index, alias, data stream or pattern, e.g. metricbeat-*.")],
    begin: From = "-30d",
    end: To = None,
    query: Annotated[str, typer.Option(help="Which documents, in Lucene's syntax, e.g. 'host.name:web*'.")] = "",
    api_key_file: Annotated[
        str, _login_option("--api-key-file", help="File with an API key, the encoded form, one line.")
    ] = "",
    dry_run: DryRun = False,
) -> None:
    """Import documents of Metricbeat, Elastic Agent and the like from Elasticsearch.

    Documents are read as they are from the topic telemetry.agents. An import that was interrupted goes on where it
    stopped when the same command is given again.
    """
    from pydantic import ValidationError

    from pipelines.contracts.settings.logins.elasticsearch import contradictions, elasticsearch_address
    from pipelines.contracts.settings.servers import ElasticsearchSettings
    from pipelines.history.elasticsearch import ElasticsearchHistory, index_name
    from pipelines.history.http_api import checked_url

    try:
        given = ElasticsearchSettings(
            url=checked_url(url), user=login.user, password_file=login.password_file, api_key_file=api_key_file,
            ca_file=login.ca_file, certificate_file=login.certificate_file, key_file=login.key_file,
        )  # fmt: skip
    except ValidationError as error:
        where = "--" + str(error.errors()[0]["loc"][0]).replace("_", "-")
        raise option(where, "the value is not one line of text, or no address", "as `--help` says") from None
    for name, (what, accepted) in contradictions(given).items():
        raise option("--" + name.partition(".")[2].replace("_", "-"), what, accepted)
    address, name = elasticsearch_address(given), index_name(index)
    say = Console(stderr=True, highlight=False)
    with stopping() as stop, closing(ElasticsearchHistory(address, name, query, stop)) as source:
        _import(load(**overrides), source, begin, end, dry_run, stop, say)


@app.command()
@with_kafka
def files(
    overrides: Overrides,
    paths: Annotated[list[str], typer.Argument(help="Files of CSV or Parquet, folders of them, or globs.")],
    begin: Annotated[str | None, typer.Option("--from", help=f"First event time: {_WHEN}. Default: all.")] = None,
    end: To = None,
    machine: Annotated[
        str,
        typer.Option(help="Machine of rows that name none. Default: input.default_machine, else the file's name."),
    ] = "",
    dry_run: DryRun = False,
) -> None:
    """Import CSV and Parquet files.

    Columns are found and named as in CSV that an agent sends (docs/input.md). Files may overlap in time and be in any
    order: they are sorted first. An import that was interrupted goes on where it stopped when the same command is given
    again.
    """
    from pipelines.history import files as history
    from pipelines.history.estimate import counted
    from pipelines.history.importing import alone, archive_folder
    from pipelines.history.intake import Intake

    settings, say, now = load(**overrides), Console(stderr=True, highlight=False), now_ms()
    folder, found = archive_folder(settings), history.listed(paths)
    intake = Intake(settings)
    with stopping() as stop, _told_if_stopped(say):
        source = history.FileHistory(settings, found, machine, folder.importing / "files", stop)
        if dry_run:
            each = ((file, source.intake_of(file)) for file in found)
            readers = list(each)
            estimate, first, last = counted(t for file, own in readers for t in source.tables(file, own, now))
            for _, own in readers:
                intake.refused.update(own.refused)
                intake.reasons = own.reasons | intake.reasons
            _tell_estimate(say, settings, source, estimate, first, last, intake)
            return
        settings = running(settings, elasticsearch=False)
        with alone(folder):
            say.print(f"sorting {len(found)} files by time")
            span = source.arrange(now, intake)
        if span is None:
            _tell_refused(say, intake)
            raise NewnormalError("IMPORT_NOTHING", "the files hold no sample", str(found[0]), "see the reasons above")
        _import(settings, source, begin or iso(span[0]), end, dry_run, stop, say, intake)
        source.forget()


@app.command()
@with_namespace
def remove(overrides: Overrides, yes: Yes = False) -> None:
    """Remove all imported history from the archive; what came live stays.

    A version that is reading it at that time cannot go on: retire it first.
    """
    from pipelines.history.importing import removed

    settings = load(**overrides)
    ask("remove all imported history from the archive?", yes)
    gone = removed(settings)
    typer.echo(f"removed the history from {iso(gone[0])} to {iso(gone[1])}" if gone else "there is none")


def _import(
    settings: Settings, source: HistorySource, begin: str, end: str | None, dry_run: bool, stop: Event, say: Console,
    intake: Intake | None = None,
) -> None:  # fmt: skip
    """Imports, or says what would be imported; tells the counts at the end.

    Raises:
        typer.Exit: If the import was stopped before its end.
    """
    from pipelines.history.estimate import live_series, probed
    from pipelines.history.importing import Import, alone, bounds
    from pipelines.history.intake import Intake
    from pipelines.history.place import edge
    from pipelines.query.control_topics import instant

    intake, now = intake or Intake(settings), now_ms()
    settings = running(settings, elasticsearch=False)
    run = Import(settings, source, intake, stop)
    with alone(run.folder), _told_if_stopped(say):
        found = edge(settings, run.folder)
        first, last = instant(begin, now, "--from") or 0, instant(end, now, "--to")
        first, last = bounds(settings, found, first, last, now)
        if first >= last:
            what = f"the archive has all from {iso(first)} on already: {visible(found.origin) or 'the log'}"
            if not found.origin:
                raise NewnormalError("IMPORT_BOUNDS", what, "--from", "an earlier time", "nothing was imported")
            say.print(what, markup=False, soft_wrap=True)
            return
        if found.origin:
            told = f"before {iso(last)}, from where on there is: {visible(found.origin)}"
            say.print(f"going on {told}", markup=False, soft_wrap=True)
        elif found.time is None:
            told = "nothing has come live yet: what comes later than now, and before the pipeline runs, will be a gap"
            saying(say)(told)
        if dry_run:
            estimate = probed(source, intake, first, last)
            _tell_estimate(say, settings, source, estimate, first, last, intake)
            return
        with progress_bar(say, 1000) as bar:
            result = run.run(found, first, last, lambda samples, share: bar(samples, round(1000 * share)))
    _tell_refused(say, intake)
    say.print(
        f"{result.samples:,} samples of {len(result.series):,} series, from {iso(result.begin)} to {iso(last)}",
        soft_wrap=True,
    )
    if not result.complete:
        say.print("stopped before the end: the same command goes on there")
        raise typer.Exit(1)
    if not result.samples and not found.origin:
        what = f"no sample from {iso(first)} to {iso(last)}"
        raise NewnormalError("IMPORT_NOTHING", what, source.origin, "series that have samples in that time")
    _tell_names(say, result.series, live_series(settings.kafka.bootstrap or "", run.folder.topic))
    say.print(f"next: newnormal replay --as v2 --from {iso(first)}", soft_wrap=True)


@contextmanager
def _told_if_stopped(say: Console) -> Iterator[None]:
    """Ends the command if a source was stopped while it was asked."""
    from pipelines.history.intake import StoppedError

    try:
        yield
    except StoppedError:
        say.print("stopped; the same command goes on there")
        raise typer.Exit(1) from None


def _tell_estimate(
    say: Console, settings: Settings, source: HistorySource, estimate: Estimate, first: int, last: int, intake: Intake
) -> None:
    about = "" if estimate.exact else "about "
    machines = len({machine for machine, _ in estimate.names})
    free = shutil.disk_usage(_existing(settings.archive.path or settings.state)).free
    lines = [
        visible(source.origin),
        f"times:    {iso(first)} to {iso(last)}, {duration(last - first)}" if estimate.samples else "times:    none",
        f"series:   {estimate.series:,}; seen: {len(estimate.names):,} of {machines:,} machines",
        f"samples:  {about}{estimate.samples:,}",
        f"archive:  about {size(estimate.size)}; free: {size(free)}",
        f"time:     about {duration(round(estimate.seconds * 1000))}",
    ]
    lines += [f"e.g.      {visible(f'{machine}  {metric}')}" for machine, metric in sorted(estimate.names)[:_SHOWN]]
    if estimate.series > settings.input.max_series:
        lines.append(f"more series than input.max_series ({settings.input.max_series:,}): a replay refuses the others")
    for line in lines:
        say.print(line, markup=False, soft_wrap=True)
    _tell_refused(say, intake)
    say.print("nothing was written")


def _tell_refused(say: Console, intake: Intake) -> None:
    for code, count in sorted(intake.refused.items()):
        say.print(f"refused: {count:,} {code}: {visible(intake.reasons[code])}", markup=False, soft_wrap=True)


def _tell_names(say: Console, imported: Series, live: Series) -> None:
    """Says which imported series do not come live: their names would differ, so that the model does not know them."""
    strangers = sorted(imported - live)
    if not live or not imported:
        return
    same = len(imported) - len(strangers)
    say.print(f"{same:,} of the {len(imported):,} series came live lately, by the same names", soft_wrap=True)
    if strangers:
        shown = "; ".join(f"{machine} {metric}" for machine, metric in strangers[:_SHOWN])
        saying(say)(f"not among these, e.g.: {visible(shown)}")


def _existing(path: Path) -> Path:
    path = path.expanduser().resolve()
    return next(each for each in (path, *path.parents) if each.exists())
