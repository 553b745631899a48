"""``newnormal simulate`` and ``agent``: live input for the pipeline. The package ``datagen`` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from datagen.agent import Agent, run_agent
from datagen.simulator import SimulatorConfig
from datagen.simulator import simulate as run_simulation
from datagen.wall_clock import WallClock
from engine.explain.printing import cell
from engine.spec.duration import duration_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.cli.input_commands import To, agents_sink, progress_bar, saying, sink_of, stopping, with_broker
from pipelines.cli.options import Overrides, with_kafka
from pipelines.cli.output_files import file_to_write
from pipelines.cli.site import simulates_a_site
from pipelines.contracts.settings import load


@simulates_a_site
@with_kafka
def simulate(
    overrides: Overrides,
    site: SimulatorConfig,
    to: To = None,
    truth: Annotated[
        Path | None, typer.Option(help="Also write the ground truth to this file, JSON lines.", callback=file_to_write)
    ] = None,
) -> None:
    """Simulate a site of hosts and VMs: metrics, logs and incidents, with ground truth of the injected incidents.

    The simulation writes to the topics telemetry.json, logs.json and groundtruth. While Kafka does not answer, it waits
    and drops nothing. Ctrl-C stops it cleanly.

    For example:

      newnormal simulate --backfill 2h                      two hours of history, then live

      newnormal simulate --hosts 2000 --vms 8000 --backfill 10m --duration 0s     load: 480,000 samples per minute

      newnormal simulate --duration 1d --speed 600          a day in 144 seconds
    """
    settings = load(**overrides)
    assert site.start is not None
    total = None if site.steps is None else site.steps * site.step
    say = Console(stderr=True, highlight=False)
    with (
        stopping() as stop,
        progress_bar(say, total) as tell,
        sink_of(settings if to else with_broker(settings), to, truth, stop=stop, say=saying(say)) as sink,
    ):
        say.print(
            f"{site.hosts} hosts, {site.vms} VMs, {site.metrics} metrics each, from {iso(site.start)}, seed {site.seed}"
        )
        begin = site.start
        summary = run_simulation(site, sink, stop, progress=lambda sent, at: tell(sent, at - begin))
    say.print(
        f"{summary.records} samples and {summary.logs} log lines sent; {len(summary.injected)} rows of ground truth"
    )


@with_kafka
def agent(
    overrides: Overrides,
    to: To = None,
    every: Annotated[str, typer.Option(help="Time between two samples.")] = "1s",
    duration: Annotated[str | None, typer.Option(help="Stop after this time. Default: until Ctrl-C.")] = None,
    entity: Annotated[str, typer.Option(help="Name of this machine in the records. Default: its host name.")] = "",
    scrape: Annotated[
        list[str] | None,
        typer.Option(
            help="Also read this page of Prometheus metrics, e.g. http://127.0.0.1:8880/metrics, on which a pipeline "
            "says how it is itself; repeatable."
        ),
    ] = None,
    buffer_size: Annotated[
        str | None,
        typer.Option(
            help="Disk space for samples that wait while Kafka does not answer, e.g. 256m. Default: buffer.size."
        ),
    ] = None,
    buffer_age: Annotated[
        str | None, typer.Option(help="How long a sample may wait on disk, e.g. 1d. Default: buffer.age.")
    ] = None,
) -> None:
    """Measure this machine and write samples to the topic telemetry.json: CPU, load, memory, disks, network, processes.

    Samples wait in a buffer on disk until Kafka has accepted them. The buffer outlasts outages of Kafka and restarts of
    the agent. When it is full, the agent drops the oldest samples and says so.
    """
    from datagen.pages import Pages  # its HTTP client: only for this command

    bounds = {"buffer.size": buffer_size, "buffer.age": buffer_age}
    settings = load(**overrides, **bounds)
    clock, say = WallClock(), Console(stderr=True, highlight=False)
    period = duration_ms(every, "--every")
    if period < 100:
        raise NewnormalError("SETTING_INVALID", f"{every}", "agent --every", "100ms or more", "nothing was started")
    length = duration_ms(duration, "--duration") if duration is not None else None
    reader = Agent(entity, Pages(scrape, saying(say)) if scrape else None)
    with (
        stopping() as stop,
        progress_bar(say, length) as tell,
        agents_sink(settings, to, reader.entity, saying(say)) as sink,
    ):
        say.print(cell(f"{reader.entity}: a sample every {every}, until {'Ctrl-C' if length is None else duration}"))
        begin = clock.now()
        until = None if length is None else begin + length
        read = run_agent(
            sink,
            period,
            stop=stop,
            clock=clock,
            agent=reader,
            until=until,
            progress=lambda sent: tell(sent, clock.now() - begin),
        )
    say.print(f"{read} samples read")
