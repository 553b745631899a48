"""`newnormal notify`: tells people of incidents, and tries the channels. `pipelines.notify` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.embedded.services import running
from engine.printing import visible
from pipelines.cli.options import Overrides, ShownVersion, StateDir, with_servers
from pipelines.contracts.settings import load

app = typer.Typer(
    help="Tell people of incidents: webhook, Slack, Alertmanager, e-mail; see docs/notifications.md.",
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
