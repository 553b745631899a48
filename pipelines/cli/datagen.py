"""``newnormal simulate``, ``agent`` and ``play``: input for the pipeline. Commands only; the work is in ``datagen``."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from datagen.agent import Agent, run_agent
from datagen.buffered import buffered
from datagen.clock import WallClock
from datagen.kafka import KafkaWriter
from datagen.outage import Tell
from datagen.player import play as play_files
from datagen.simulator import SimulatorConfig, resolve
from datagen.simulator import demo as demo_config
from datagen.simulator import simulate as run_simulation
from datagen.sinks import FileSink, KafkaSink, Sink, make_topics
from deploy.embedded import record
from engine.errors import NewnormalError
from engine.time import duration_ms, epoch_ms, iso
from pipelines.cli.options import Kafka, Namespace, StateDir
from pipelines.settings import Settings, load

app = typer.Typer(help="Input for the pipeline.", no_args_is_help=True, rich_markup_mode="rich")

To = Annotated[Path | None, typer.Option(help="Write JSON lines to files in this folder instead of Kafka.")]


@app.command()
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
        typer.Option(help="Event time of the first sample, ISO 8601. [default: such that the history ends now]"),
    ] = None,
    backfill: Annotated[
        str, typer.Option(help="Length of the history that is sent first, as fast as possible.")
    ] = "0s",
    duration: Annotated[
        str | None, typer.Option(help="Length of the live part, in event time. [default: until Ctrl-C]")
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
    truth: Annotated[Path | None, typer.Option(help="Also write the ground truth here, JSON lines.")] = None,
) -> None:
    """Simulate a site of hosts and VMs: metrics, logs and incidents, with the truth about what was injected.

    Writes to the topics telemetry.json, logs.json and groundtruth. While Kafka does not answer, the simulation waits:
    nothing is dropped. Ctrl-C stops cleanly.

    For example:

      newnormal simulate --backfill 2h                      two hours of history, then live

      newnormal simulate --hosts 2000 --vms 8000 --backfill 10m --duration 0s     load: 600,000 samples a minute

      newnormal simulate --duration 1d --speed 600          a day in 144 seconds
    """
    pace = _speed(speed)
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
        _stopping() as stop,
        _progress(say, total) as tell,
        _sink(kafka, namespace, state_dir, to, truth, stop=stop, say=_saying(say)) as sink,
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


@app.command()
def agent(
    *,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
    to: To = None,
    every: Annotated[str, typer.Option(help="Time between two samples.")] = "1s",
    duration: Annotated[str | None, typer.Option(help="Stop after this time. [default: until Ctrl-C]")] = None,
    entity: Annotated[str, typer.Option(help="Name of this machine in the records. [default: its host name]")] = "",
    buffer_size: Annotated[
        str | None,
        typer.Option(help="What may wait on disk while Kafka does not answer, e.g. 256m. [default: buffer.size]"),
    ] = None,
    buffer_age: Annotated[
        str | None, typer.Option(help="How long a sample may wait there, e.g. 1d. [default: buffer.age]")
    ] = None,
) -> None:
    """Watch this machine: CPU, load, memory, disks, network, processes, once a second, to the topic telemetry.json.

    Samples wait in a buffer on disk until Kafka has taken them: while it does not answer, also at the start, and from
    one start to the next. What the buffer cannot hold is dropped, the oldest first, and told of.
    """
    settings = load(namespace=namespace, state_dir=state_dir, **{"buffer.size": buffer_size, "buffer.age": buffer_age})
    clock, say = WallClock(), Console(stderr=True, highlight=False)
    period = duration_ms(every, "--every")
    if period < 100:
        raise NewnormalError("SETTING_INVALID", f"{every}", "agent --every", "100ms or more", "nothing was started")
    length = duration_ms(duration, "--duration") if duration is not None else None
    reader = Agent(entity)
    with (
        _stopping() as stop,
        _progress(say, length) as tell,
        _agents_sink(kafka, state_dir, to, settings, reader.entity, _saying(say)) as sink,
    ):
        say.print(f"{reader.entity}: a sample every {every}, until {'Ctrl-C' if length is None else duration}")
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


@app.command()
def play(
    files: Annotated[list[Path], typer.Argument(help="CSV files: a time column and one or more value columns.")],
    *,
    kafka: Kafka = None,
    namespace: Namespace = None,
    state_dir: StateDir = None,
    to: To = None,
    speed: Annotated[str, typer.Option(help="Event time a real time; 0 or max: as fast as possible.")] = "max",
    shift_to_now: Annotated[
        bool, typer.Option("--shift-to-now", help="Move the series to the present. [default: event times as recorded]")
    ] = False,
) -> None:
    """Play recorded series, such as NAB's, to the topic telemetry.json.

    A file is a machine, named as the file; a column is a metric (kind gauge), named as the column. Columns named label
    or is_anomaly are ignored. Values that are missing or no numbers are skipped, counted and reported. While Kafka does
    not answer, the playing waits: nothing is dropped.

    For example:

      newnormal play nab/data/realKnownCause/*.csv

      newnormal play recorded.csv --shift-to-now --speed 60
    """
    say = Console(stderr=True, highlight=False)
    pace = _speed(speed)
    with (
        _stopping() as stop,
        _progress(say, 1000) as tell,
        _sink(kafka, namespace, state_dir, to, stop=stop, say=_saying(say)) as sink,
    ):
        played = play_files(
            files,
            sink,
            pace,
            shift_to_now,
            stop=stop,
            progress=lambda sent, total: tell(sent, sent * 1000 // max(total, 1)),
        )
    for report in played.reports:
        say.print(str(report), markup=False, soft_wrap=True)
    say.print(f"{played.records} samples sent")


def _speed(text: str) -> float:
    try:
        speed = 0.0 if text.strip().lower() == "max" else float(text)
        if 0 <= speed < float("inf"):
            return speed
    except ValueError:
        pass
    raise NewnormalError(
        "SPEED_INVALID", repr(text), "--speed", "a number such as 1 or 60; 0 or max: as fast as possible"
    )


def _bootstrap(kafka: str | None, state_dir: Path | None) -> str:
    settings = load(**{"kafka.bootstrap": kafka, "state_dir": state_dir})
    if settings.kafka.bootstrap:
        return settings.kafka.bootstrap
    running = record.read(settings.state)
    if running and running.endpoints.bootstrap:
        return running.endpoints.bootstrap
    raise NewnormalError(
        "KAFKA_UNREACHABLE",
        "no broker was named, and no embedded one is running",
        str(settings.state),
        "--kafka host:port, the setting kafka.bootstrap, or `newnormal services up`",
        "nothing was sent",
    )


@contextmanager
def _sink(
    kafka: str | None,
    namespace: str | None,
    state_dir: Path | None,
    to: Path | None,
    truth: Path | None = None,
    *,
    stop: threading.Event,
    say: Tell,
) -> Iterator[Sink]:
    """Files, or Kafka with the topics made: for a source that can wait for it."""
    with ExitStack() as stack:
        if to:
            yield stack.enter_context(FileSink(to))
            return
        bootstrap = _bootstrap(kafka, state_dir)
        settings = load(**{"kafka.bootstrap": bootstrap, "namespace": namespace})
        make_topics(settings, bootstrap)
        writer = stack.enter_context(KafkaWriter(bootstrap, stop, say))
        yield KafkaSink(writer, settings.namespace, _opened(stack, truth))


@contextmanager
def _agents_sink(
    kafka: str | None, state_dir: Path | None, to: Path | None, settings: Settings, name: str, say: Tell
) -> Iterator[Sink]:
    """Files, or Kafka through the buffer on disk: for a source that cannot wait."""
    if to:
        with FileSink(to) as files:
            yield files
        return
    with buffered(settings, name, lambda: _bootstrap(kafka, state_dir), say) as writer:
        yield KafkaSink(writer, settings.namespace)


def _opened(stack: ExitStack, path: Path | None) -> TextIO | None:
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return stack.enter_context(path.open("w", encoding="utf-8"))
    except OSError as error:
        raise NewnormalError("OUTPUT_NOT_WRITABLE", str(error), str(path), "a file that can be written") from None


def _saying(console: Console) -> Tell:
    """Shows sentences above the progress."""
    return lambda text: console.print(text, style="yellow", markup=False, soft_wrap=True)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; a second one of them ends the process at once."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Teller:
    """Shows records, rate and, of bounded work, the share done."""

    def __init__(self, progress: Progress, total: int | None) -> None:
        self._progress, self._began = progress, time.monotonic()
        self._task = progress.add_task("", total=total)

    def __call__(self, records: int, done: int) -> None:
        rate = records / max(time.monotonic() - self._began, 0.001)
        self._progress.update(self._task, completed=done, description=f"{records:,} samples, {rate:,.0f}/s")


@contextmanager
def _progress(console: Console, total: int | None) -> Iterator[_Teller]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield _Teller(progress, total)
