"""`newnormal gateway`: takes what agents push over HTTP and puts it on Kafka. `pipelines.gateway` does the work."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from deploy.embedded.services import running
from pipelines.cli.options import Kafka, Namespace, StateDir, overrides
from pipelines.contracts.settings import load


def gateway(
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: gateway.host.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port; if it is taken, the next free one. Default: gateway.port.")
    ] = None,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
) -> None:
    """Take what agents push over HTTP (Prometheus remote write, OTLP, Influx) and put it on Kafka, until Ctrl-C.

    A request is answered with success only when Kafka has acknowledged it; see docs/gateway.md.
    """
    from pipelines.gateway.serving import run  # the web server and the decoders: only for this command

    given = overrides(kafka, None, state_dir, namespace) | {"gateway.host": host, "gateway.port": port}
    settings = running(load(**given), elasticsearch=False)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    run(settings, stopped, lambda url: typer.echo(f"gateway at {url} (Ctrl-C ends it)"))
