"""`newnormal gateway`: takes what agents push over HTTP and puts it on Kafka. `pipelines.gateway` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.embedded.services import running
from pipelines.cli.options import Overrides, with_kafka
from pipelines.contracts.settings import load


@with_kafka
def gateway(
    overrides: Overrides,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: gateway.host.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port; if it is taken, the next free one. Default: gateway.port.")
    ] = None,
) -> None:
    """Take what agents push over HTTP (Prometheus remote write, OTLP, Influx) and put it on Kafka, until Ctrl-C.

    A request is answered with success only when Kafka has acknowledged it; see docs/gateway.md.
    """
    from pipelines.cli.input_commands import stopping
    from pipelines.gateway.serving import run  # the web server and the decoders: only for this command

    overrides |= {"gateway.host": host, "gateway.port": port}
    settings = running(load(**overrides), elasticsearch=False)
    with stopping() as stopped:
        run(settings, stopped, lambda url: typer.echo(f"gateway at {url} (Ctrl-C ends it)"))
