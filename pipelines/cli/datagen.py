"""``newnormal simulate`` and ``agent``: live input for the pipeline. Commands only; the work is in ``datagen``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from datagen.agent import Agent, run_agent
from datagen.clock import WallClock
from datagen.simulator import SimulatorConfig, resolve
from datagen.simulator import demo as demo_config
from datagen.simulator import simulate as run_simulation
from engine.explain.printing import cell
from engine.spec.duration import duration_ms, epoch_ms, iso
from engine.spec.errors import NewnormalError
from pipelines.cli.options import Kafka, Namespace, StateDir, overrides
from pipelines.cli.output import file_to_write
from pipelines.cli.sources import To, agents_sink, found, progress_bar, saying, sink_of, speed_of, stopping
from pipelines.contracts.settings import load


def simulate(
    *,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
    to: To = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="The demo's site: 24 machines, 45 minutes of history, clear incidents. "
            "Only --seed, --duration and --speed apply.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of all randomness: the same seed and options give the same bytes.")] = 1,
    hosts: Annotated[int, typer.Option(min=1, help="Physical machines.")] = 20,
    vms: Annotated[int, typer.Option(min=0, help="Virtual machines on them.")] = 80,
    metrics: Annotated[int, typer.Option(min=6, max=10, help="Metrics a machine.")] = 8,
    step: Annotated[str, typer.Option(help="Time between two samples of a metric.")] = "10s",
    start: Annotated[
        str | None,
        typer.Option(help="Event time of the first sample, ISO 8601. Default: such that the history ends now."),
    ] = None,
    backfill: Annotated[
        str, typer.Option(help="Length of the history that is sent first, as fast as possible.")
    ] = "0s",
    duration: Annotated[
        str | None, typer.Option(help="Length of the live part, in event time. Default: until Ctrl-C.")
    ] = None,
    speed: Annotated[
        str, typer.Option(help="Event time a real time in the live part; max: as fast as possible.")
    ] = "1",
    quiet: Annotated[str, typer.Option(help="Time from the start without random incidents.")] = "15m",
    incident_rate: Annotated[float, typer.Option(min=0, help="Random incidents a machine and day.")] = 0.5,
    log_rate: Annotated[float, typer.Option(min=0, max=100, help="Log lines a machine and step.")] = 0.2,
    missing: Annotated[float, typer.Option(min=0, max=1, help="Share of samples that are lost.")] = 0.001,
    late: Annotated[
        float, typer.Option(min=0, max=1, help="Share of samples that come up to two minutes late.")
    ] = 0.001,
    truth: Annotated[
        Path | None, typer.Option(help="Also write the ground truth here, JSON lines.", callback=file_to_write)
    ] = None,
) -> None:
    """Simulate a site of hosts and VMs: metrics, logs and incidents, with the truth about what was injected.

    Writes to the topics telemetry.json, logs.json and groundtruth. While Kafka does not answer, the simulation waits:
    nothing is dropped. Ctrl-C stops cleanly.

    For example:

      newnormal simulate --backfill 2h                      two hours of history, then live

      newnormal simulate --hosts 2000 --vms 8000 --backfill 10m --duration 0s     load: 480,000 samples a minute

      newnormal simulate --duration 1d --speed 600          a day in 144 seconds
    """
    settings = load(**overrides(kafka, None, state_dir, namespace))
    pace = speed_of(speed)
    length = duration_ms(duration, "--duration") if duration is not None else None
    now = WallClock().now()
    if demo:
        config = replace(demo_config(now, seed), duration=length, speed=pace)
    else:
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
    config = resolve(config, now)
    assert config.start is not None
    total = None if config.steps is None else config.steps * config.step
    say = Console(stderr=True, highlight=False)
    with (
        stopping() as stop,
        progress_bar(say, total) as tell,
        sink_of(settings if to else found(settings), to, truth, stop=stop, say=saying(say)) as sink,
    ):
        say.print(
            f"{config.hosts} hosts, {config.vms} VMs, {config.metrics} metrics each, "
            f"from {iso(config.start)}, seed {config.seed}"
        )
        begin = config.start
        summary = run_simulation(config, sink, stop, progress=lambda sent, at: tell(sent, at - begin))
    say.print(
        f"{summary.records} samples and {summary.logs} log lines sent; {len(summary.injected)} rows of ground truth"
    )


def agent(
    *,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
    to: To = None,
    every: Annotated[str, typer.Option(help="Time between two samples.")] = "1s",
    duration: Annotated[str | None, typer.Option(help="Stop after this time. Default: until Ctrl-C.")] = None,
    entity: Annotated[str, typer.Option(help="Name of this machine in the records. Default: its host name.")] = "",
    buffer_size: Annotated[
        str | None,
        typer.Option(help="What may wait on disk while Kafka does not answer, e.g. 256m. Default: buffer.size."),
    ] = None,
    buffer_age: Annotated[
        str | None, typer.Option(help="How long a sample may wait there, e.g. 1d. Default: buffer.age.")
    ] = None,
) -> None:
    """Watch this machine: CPU, load, memory, disks, network, processes, once a second, to the topic telemetry.json.

    Samples wait in a buffer on disk until Kafka has taken them: while it does not answer, also at the start, and from
    one start to the next. What the buffer cannot hold is dropped, the oldest first, and told of.
    """
    bounds = {"buffer.size": buffer_size, "buffer.age": buffer_age}
    settings = load(**overrides(kafka, None, state_dir, namespace), **bounds)
    clock, say = WallClock(), Console(stderr=True, highlight=False)
    period = duration_ms(every, "--every")
    if period < 100:
        raise NewnormalError("SETTING_INVALID", f"{every}", "agent --every", "100ms or more", "nothing was started")
    length = duration_ms(duration, "--duration") if duration is not None else None
    reader = Agent(entity)
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
