"""`newnormal bench`: speed and accuracy, measured from a checkout (tests/benchmarks)."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from deploy.embedded.external import check_kafka
from engine.spec.errors import NewnormalError
from pipelines.cli.options import Kafka, StateDir, overrides
from pipelines.cli.output_files import file_to_write, folder_to_write
from pipelines.contracts.settings import load

app = typer.Typer(help="Measure speed and accuracy; figures are kept in docs/benchmarks.md.", no_args_is_help=True)
_CHECKOUT = Path(__file__).parents[2]

Report = Annotated[Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")]


@app.command()
def throughput(
    records: Annotated[int, typer.Option(help="Records of the measured load.")] = 6_000_000,
    keys: Annotated[int, typer.Option(help="Series they are spread over.")] = 10_000,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Extractor and normalizer beside a hand-written Structured Streaming job, outputs compared."""
    _run("throughput", out, records, keys, _answering(kafka, state_dir), state_dir)


@app.command()
def latency(
    rate: Annotated[int, typer.Option(help="Records a second.")] = 20_000,
    seconds: Annotated[int, typer.Option(help="Length of the measured part.")] = 60,
    out: Report = None,
    state_dir: StateDir = None,
) -> None:
    """The whole chain under a steady load: window end + watermark bound → feature, and → searchable document."""
    _run("latency", out, rate, seconds, state_dir)


@app.command()
def logs(
    lines: Annotated[int, typer.Option(help="Log lines.")] = 400_000,
    machines: Annotated[int, typer.Option(help="Machines that write them.")] = 1_000,
    out: Report = None,
) -> None:
    """Log lines a second on one core: JSON to columns, masking, the templates job, Drain on lines that are all new."""
    _run("logs", out, lines, machines)


@app.command()
def engine(
    part: Annotated[list[str] | None, typer.Option(help="windows, process, sliding or growth; all without it.")] = None,
    keys: Annotated[list[int] | None, typer.Option(help="Series; 10,000 and then 100,000 without it.")] = None,
    records: Annotated[int | None, typer.Option(help="Records of each load, instead of the part's own number.")] = None,
    out: Report = None,
    plot: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Draw the growth of state and time to this file.")
    ] = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Windows, a stateful process and sliding windows beside jobs written by hand; growth with the number of keys."""
    _run("engine", out, part or None, keys or None, records, _answering(kafka, state_dir), state_dir, plot)


@app.command()
def model(
    series: Annotated[int, typer.Option(help="Series judged together.")] = 10_000,
    seconds: Annotated[float, typer.Option(help="Length of the measured part.")] = 20.0,
    out: Report = None,
) -> None:
    """The model alone, without frames: values judged and learned a second on one core, bytes of state a series."""
    _run("model", out, series, seconds)


@app.command()
def detector(
    keys: Annotated[int, typer.Option(help="Series, ten of each machine.")] = 10_000,
    windows: Annotated[int, typer.Option(help="Windows of each series.")] = 240,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """The detector on Spark, columnar features to verdicts (all, novelties only), beside the models alone; compared."""
    _run("detector", out, keys, windows, _answering(kafka, state_dir), state_dir)


@app.command()
def shard(
    keys: Annotated[int, typer.Option(help="Series, half of them in the shard.")] = 10_000,
    windows: Annotated[int, typer.Option(help="Windows of each series.")] = 60,
    batch: Annotated[int, typer.Option(help="Windows of a micro-batch.")] = 20,
    out: Report = None,
) -> None:
    """One shard of the detector job without Spark: CPU time a row of decoding, operator and messages."""
    _run("shard", out, keys, windows, batch)


Data = Annotated[Path, typer.Option(help="Folder of the data sets: nab/, cloud_monitoring/, asd/.")]
Out = Annotated[
    Path, typer.Option(callback=folder_to_write, help="Folder for results: figures as JSON, plots, scores.")
]


@app.command()
def nab(
    data: Data,
    out: Out,
    variations: Annotated[int, typer.Option(help="Random settings around the chosen ones to judge as well.")] = 0,
) -> None:
    """NAB by its official rules, with the scores in NAB's own layout: OUT/<category>/<file>.csv."""
    _run("nab", None, data, out, variations)


@app.command()
def vus(data: Data, out: Out) -> None:
    """VUS-PR and AUC-PR on cloud_monitoring and ASD beside simple detectors, with paired bootstrap intervals."""
    _run("vus", None, data, out)


@app.command()
def kinds(
    out: Out,
    entities: Annotated[int, typer.Option(help="Machines, a fifth of them hosts.")] = 200,
    weeks: Annotated[int, typer.Option(help="Weeks of event time.")] = 6,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 101,
) -> None:
    """Anomaly or new normal? A simulated site with ground truth: found, delay, false alarms, confusion, acceptance."""
    _run("kinds", None, out, entities, weeks, seed)


@app.command()
def calibration(
    series: Annotated[int, typer.Option(help="Series of each family.")] = 500,
    windows: Annotated[int, typer.Option(help="Windows of each that count.")] = 2000,
    warm: Annotated[int, typer.Option(help="Windows of each before those.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the values.")] = 1,
    out: Report = None,
) -> None:
    """On stationary series of each family: how often are windows as improbable as is said?"""
    _run("calibration", out, series, windows, warm, seed)


def _answering(kafka: str | None, state_dir: Path | None) -> str | None:
    """The broker that is named on the command line, after a look whether the one of the settings answers.

    Raises:
        NewnormalError: ``SETTING_INVALID``, ``KAFKA_UNREACHABLE``.
    """
    bootstrap = load(**overrides(kafka, None, state_dir, None)).kafka.bootstrap
    if bootstrap:
        check_kafka(bootstrap)
    return kafka


def _run(name: str, report: Path | None, *arguments: object) -> None:
    """Runs a benchmark of tests/benchmarks in a process of its own, which finds the checkout's modules.

    Args:
        name: Of the benchmark.
        report: The file for its figures.
        arguments: Those of its function ``run``.

    Raises:
        NewnormalError: ``BENCH_ABSENT`` outside of a checkout.
    """
    if not (_CHECKOUT / "tests" / "benchmarks" / f"{name}.py").exists():
        raise NewnormalError("BENCH_ABSENT", f"{name} is not in {_CHECKOUT}", "newnormal bench", "a checkout")
    path = os.pathsep.join(filter(None, [str(_CHECKOUT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "tests.benchmarks", name, *([str(report)] if report else [])]
    environment = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(arguments))
        process.stdin.close()
        try:
            code = process.wait()
        except KeyboardInterrupt:  # Ctrl-C has reached the benchmark too
            code = process.wait()
    if code:
        raise typer.Exit(code)
