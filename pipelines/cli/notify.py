"""`newnormal notify`: tells people of incidents, and tries channels and routes. `pipelines.notify` does the work."""

from __future__ import annotations

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
from pipelines.contracts.records.severity import Severity
from pipelines.contracts.settings import load
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
