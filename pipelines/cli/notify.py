"""`newnormal notify`: tells people of incidents, and tries channels and routes. `pipelines.notify` does the work."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from deploy.embedded.services import running
from engine.clock import now_ms
from engine.printing import visible
from engine.spec.duration import iso
from engine.spec.errors import NewnormalError
from pipelines.cli import rows
from pipelines.cli.options import Overrides, ShownVersion, StateDir, with_servers
from pipelines.cli.past import past
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings import load
from pipelines.contracts.version_names import FIRST
from pipelines.query.control_topics import instant

app = typer.Typer(
    help="Tell people of incidents: pagers, chats, phones, mail, webhooks; see docs/notifications.md.",
    no_args_is_help=True,
)


@app.command()
@with_servers
def run(
    overrides: Overrides,
    version: ShownVersion = None,
) -> None:
    """Tell all channels of the settings of incidents, until Ctrl-C."""
    from pipelines.cli.input_commands import stopping
    from pipelines.notify.running import Notifier  # Kafka and servers: only for this command

    settings = running(load(**overrides), elasticsearch=version is None)
    notifier = Notifier(settings, version)

    def ready(name: str) -> None:
        channels = ", ".join(settings.notify.channels)
        typer.echo(visible(f"telling {channels} of incidents of {name}; metrics at {notifier.url} (Ctrl-C ends it)"))

    try:
        with stopping() as stopped:
            notifier.run(stopped, ready)
    finally:
        notifier.close()


@app.command()
def test(channel: Annotated[str, typer.Argument(help="Name of the channel.")], state_dir: StateDir = None) -> None:
    """Send a test message to a channel, and say what it answered."""
    from pipelines.notify.trial import try_channel

    typer.echo(visible(try_channel(channel, load(state_dir=state_dir).notify)))


@app.command()
def routes(
    machine: Annotated[str, typer.Option(help="The machine of the incident; none: the silence of an input.")] = "",
    metric: Annotated[str, typer.Option(help="Its metric, with the labels if the series has some.")] = "",
    severity: Annotated[Severity, typer.Option(help="Its severity.")] = "critical",
    at: Annotated[str, typer.Option(help="When it opens: ISO 8601, 'now', or a time from now such as +2h.")] = "now",
    draft: Annotated[
        Path | None, typer.Option(help="A file with a section notify of its own, which is tried before it is saved.")
    ] = None,
    state_dir: StateDir = None,
) -> None:
    """Show which route an incident would take, and whom it would be told; nothing is sent."""
    from pipelines.notify.trial import try_routes

    settings = load(**_drafted(draft), state_dir=state_dir).notify
    now = now_ms()
    when = instant(at, now, "--at") or now
    tried = try_routes(settings, machine, metric, severity, when)
    columns = dict.fromkeys(("route", "takes it", "channels", "without acknowledgement", "reminds every"), False)
    table = [
        (it.route.name, f"no: {it.why}" if it.why else "yes", _names(it.route.channels), it.escalation, it.route.remind)
        for it in tried
    ]
    if table:
        rows.show(columns, table)
    taken = [each for each in tried if not each.why]
    whom = dict.fromkeys(name for each in taken for name in each.route.channels)
    who = f"{severity} at {iso(when)}: " + (f"told {', '.join(whom)}" if whom else "nobody is told")
    later = "; ".join(each.escalation for each in taken if each.escalation)
    typer.echo(visible(who + (f"; without acknowledgement: {later}" if later else "")))


@app.command("try")
@with_servers
def try_(
    overrides: Overrides,
    draft: Annotated[Path, typer.Option(help="A file with the section notify that is tried: channels, routes, quiet.")],
    start: Annotated[
        str, typer.Option("--from", help="Try it on incidents from this time on: ISO 8601, or -7d.")
    ] = "-30d",
    end: Annotated[str, typer.Option("--until", "--to", help="Try it on incidents until this time.")] = "now",
    version: ShownVersion = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object with all figures.")] = False,
) -> None:
    """Say whom other settings would have told of the stored incidents, and when; nothing is sent or written.

    Both settings, those in force and those of the file, are applied to each revision of the incidents, as
    newnormal notify run does it.

    Example: [bold]newnormal notify try --draft new.toml --from -7d[/bold]
    """
    from pipelines.cli.route_trial import route_lines
    from pipelines.evaluation.comparison.reading import spans
    from pipelines.evaluation.route_trial.stored import stored_incidents
    from pipelines.evaluation.route_trial.trial import route_trial
    from pipelines.versions.promotion import shown_version
    from pipelines.versions.registry import Registry

    now = now_ms()
    begin, until = past(start, end, now, "notify try")
    tried = load(**overrides, **_drafted(draft)).notify
    settings = running(load(**overrides))
    name = version or shown_version(settings) or FIRST
    shown = settings.of(Registry(settings).get(name).names)
    stored = stored_incidents(shown, begin, until)
    said, _ = spans(settings, (), ())
    found = route_trial(settings.notify, tried, begin, until, stored, said)
    if as_json:
        typer.echo(json.dumps(found.figures()))
        return
    for line in route_lines(found):
        typer.echo(visible(line))


def _names(channels: tuple[str, ...]) -> str:
    return ", ".join(channels) or "nobody"


def _drafted(file: Path | None) -> dict[str, Any]:
    """The settings of notifications of a file, by dotted name.

    Raises:
        NewnormalError: ``FILE_UNUSABLE``.
    """
    if file is None:
        return {}
    try:
        tree = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise NewnormalError("FILE_UNUSABLE", visible(str(error)), f"--draft {file}", "TOML with a [notify]") from None
    section = tree.get("notify", {})
    return (
        {f"notify.{name}": value for name, value in section.items()}
        if isinstance(section, dict)
        else {"notify": section}
    )
