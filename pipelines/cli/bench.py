"""`newnormal bench`: speed and accuracy, measured from a checkout (tests/benchmarks)."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from engine.spec.errors import NewnormalError
from pipelines.cli.options import Kafka, StateDir
from pipelines.cli.output import file_to_write, folder_to_write

app = typer.Typer(help="Measure speed and accuracy; figures are kept in docs/benchmarks.md.", no_args_is_help=True)
_CHECKOUT = Path(__file__).parents[2]


@app.command()
def throughput(
    records: Annotated[int, typer.Option(help="Records of the measured load.")] = 6_000_000,
    keys: Annotated[int, typer.Option(help="Series they are spread over.")] = 10_000,
    out: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")
    ] = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Extractor and normalizer beside a hand-written Structured Streaming job, outputs compared."""
    _report(module("throughput").run(records, keys, kafka, state_dir), out)


@app.command()
def latency(
    rate: Annotated[int, typer.Option(help="Records a second.")] = 20_000,
    seconds: Annotated[int, typer.Option(help="Length of the measured part.")] = 60,
    out: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")
    ] = None,
    state_dir: StateDir = None,
) -> None:
    """The whole chain under a steady load: window end + watermark bound → feature, and → searchable document."""
    _report(module("latency").run(rate, seconds, state_dir), out)


@app.command()
def logs(
    lines: Annotated[int, typer.Option(help="Log lines.")] = 400_000,
    machines: Annotated[int, typer.Option(help="Machines that write them.")] = 1_000,
    out: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")
    ] = None,
) -> None:
    """Log lines a second on one core: JSON to columns, masking, the templates job, Drain on lines that are all new."""
    _report(module("logs").run(lines, machines), out)


@app.command()
def engine(
    part: Annotated[list[str] | None, typer.Option(help="windows, process, sliding or growth; all without it.")] = None,
    keys: Annotated[list[int] | None, typer.Option(help="Series; 10,000 and then 100,000 without it.")] = None,
    records: Annotated[int | None, typer.Option(help="Records of each load, instead of the part's own number.")] = None,
    out: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Draw the growth of state and time to this file.")
    ] = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Windows, a stateful process and sliding windows beside jobs written by hand; growth with the number of keys."""
    bench = module("engine")
    chosen = part or [*bench.PARTS, "growth"]
    _report(bench.run(chosen, keys or bench.KEYS, records, kafka, state_dir, plot=plot), out)


@app.command()
def model(
    series: Annotated[int, typer.Option(help="Series judged together.")] = 10_000,
    seconds: Annotated[float, typer.Option(help="Length of the measured part.")] = 20.0,
    out: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")
    ] = None,
) -> None:
    """The model alone, without frames: values judged and learned a second on one core, bytes of state a series."""
    _report(module("model").run(series, seconds), out)


@app.command()
def detector(
    keys: Annotated[int, typer.Option(help="Series, ten of each machine.")] = 10_000,
    windows: Annotated[int, typer.Option(help="Windows of each series.")] = 240,
    out: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")
    ] = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """The detector on Spark, columnar features to verdicts (all, novelties only), beside the models alone; compared."""
    _report(module("detector").run(keys, windows, kafka, state_dir), out)


@app.command()
def shard(
    keys: Annotated[int, typer.Option(help="Series, half of them in the shard.")] = 10_000,
    windows: Annotated[int, typer.Option(help="Windows of each series.")] = 60,
    batch: Annotated[int, typer.Option(help="Windows of a micro-batch.")] = 20,
    out: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")
    ] = None,
) -> None:
    """One shard of the detector job without Spark: CPU time a row of decoding, operator and messages."""
    _report(module("shard").run(keys, windows, batch), out)


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
    module("nab").run(data, out, variations)


@app.command()
def vus(data: Data, out: Out) -> None:
    """VUS-PR and AUC-PR on cloud_monitoring and ASD beside simple detectors, with paired bootstrap intervals."""
    module("vus").run(data, out)


@app.command()
def kinds(
    out: Out,
    entities: Annotated[int, typer.Option(help="Machines, a fifth of them hosts.")] = 200,
    weeks: Annotated[int, typer.Option(help="Weeks of event time.")] = 6,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 101,
) -> None:
    """Anomaly or new normal? A simulated site with ground truth: found, delay, false alarms, confusion, acceptance."""
    module("kinds").run(out, entities, weeks, seed)


@app.command()
def calibration(
    series: Annotated[int, typer.Option(help="Series of each family.")] = 500,
    windows: Annotated[int, typer.Option(help="Windows of each that count.")] = 2000,
    warm: Annotated[int, typer.Option(help="Windows of each before those.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the values.")] = 1,
    out: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write the figures to this JSON file.")
    ] = None,
) -> None:
    """On stationary series of each family: how often are windows as improbable as is said?"""
    _report(module("calibration").run(series, windows, warm, seed), out)


def module(name: str) -> ModuleType:
    """A benchmark of tests/benchmarks; Spark's Python workers find it too."""
    if not (_CHECKOUT / "tests" / "benchmarks" / f"{name}.py").exists():
        raise NewnormalError("BENCH_ABSENT", f"{name} is not in {_CHECKOUT}", "newnormal bench", "a checkout")
    if str(_CHECKOUT) not in sys.path:
        sys.path.insert(0, str(_CHECKOUT))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_CHECKOUT), os.environ.get("PYTHONPATH")]))
    return importlib.import_module(f"tests.benchmarks.{name}")


def _report(figures: dict[str, object], out: Path | None) -> None:
    text = json.dumps(figures, indent=2)
    if out:
        out.write_text(text + "\n")
    typer.echo(text)
