"""The options of ``newnormal simulate``: which site, from when, how long and how fast.

The decorator `simulates_a_site` gives a command these options; the command gets them as one argument, ``site``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from datagen.simulator import SimulatorConfig, resolve
from datagen.simulator import demo as demo_config
from engine.clock import now_ms
from engine.spec.duration import duration_ms, epoch_ms
from pipelines.cli.input_commands import speed_of
from pipelines.cli.option_set import option_set

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
