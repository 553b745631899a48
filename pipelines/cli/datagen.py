"""``newnormal simulate`` and ``agent``: live input for the pipeline. The package ``datagen`` does the work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from datagen.agent import Agent, run_agent
from datagen.simulator import SimulatorConfig, resolve
from datagen.simulator import demo as demo_config
from datagen.simulator import simulate as run_simulation
from datagen.wall_clock import WallClock
from engine.clock import now_ms
from engine.printing import cell
from engine.spec.duration import duration_ms, epoch_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.cli.input_commands import To, agents_sink, progress_bar, saying, sink_of, speed_of, stopping, with_broker
from pipelines.cli.option_set import option_set
from pipelines.cli.options import Overrides, with_kafka
from pipelines.cli.output_files import file_to_write
from pipelines.contracts.settings import load

Demo = Annotated[
    bool,
    typer.Option(
        "--demo",
        help="Simulate the demo's site: 24 machines, 45 minutes of history, clear incidents. "
        "Of the other options only --seed, --duration and --speed have an effect.",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of all randomness: the same seed and options give the same bytes.")]
Hosts = Annotated[int, typer.Option(min=1, help="Number of physical machines.")]
Vms = Annotated[int, typer.Option(min=0, help="Number of virtual machines.")]
Metrics = Annotated[int, typer.Option(min=6, max=10, help="Metrics per machine.")]
Step = Annotated[str, typer.Option(help="Time between two samples of a metric.")]
Start = Annotated[
    str | None,
    typer.Option(help="Event time of the first sample, ISO 8601. Default: chosen so that the history ends now."),
]
Backfill = Annotated[str, typer.Option(help="Length of the history that is sent first, as fast as possible.")]
Length = Annotated[
    str | None, typer.Option("--duration", help="Length of the live part, in event time. Default: until Ctrl-C.")
]
Speed = Annotated[
    str, typer.Option(help="Seconds of event time per second in the live part; max: as fast as possible.")
]
Quiet = Annotated[str, typer.Option(help="Time without random incidents at the start.")]
IncidentRate = Annotated[float, typer.Option(min=0, help="Random incidents per machine and day.")]
LogRate = Annotated[float, typer.Option(min=0, max=100, help="Log lines per machine and step.")]
Missing = Annotated[float, typer.Option(min=0, max=1, help="Share of samples that are lost.")]
Late = Annotated[float, typer.Option(min=0, max=1, help="Share of samples that arrive up to two minutes late.")]


def _site(
    *,
    demo: Demo = False,
    seed: Seed = 1,
    hosts: Hosts = 20,
    vms: Vms = 80,
    metrics: Metrics = 8,
    step: Step = "10s",
    start: Start = None,
    backfill: Backfill = "0s",
    duration: Length = None,
    speed: Speed = "1",
    quiet: Quiet = "15m",
    incident_rate: IncidentRate = 0.5,
    log_rate: LogRate = 0.2,
    missing: Missing = 0.001,
    late: Late = 0.001,
) -> SimulatorConfig:
    """The site that the options describe, with the time of the first sample filled in."""
    now, pace = now_ms(), speed_of(speed)
    length = duration_ms(duration, "--duration") if duration is not None else None
    if demo:
        return resolve(replace(demo_config(now, seed), duration=length, speed=pace), now)
    config = SimulatorConfig(
        seed=seed,
        hosts=hosts,
        vms=vms,
        spare=max(1, vms // 20),
        metrics=metrics,
        step=duration_ms(step, "--step"),
        start=epoch_ms(start) if start else None,
        backfill=duration_ms(backfill, "--backfill"),
        duration=length,
        speed=pace,
        incident_rate=incident_rate,
        quiet=duration_ms(quiet, "--quiet"),
        log_rate=log_rate,
        missing=missing,
        late=late,
    )
    return resolve(config, now)


simulates_a_site = option_set("site", _site)
"""A decorator: gives a command the options of a simulated site; the command gets them as its argument ``site``."""


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
