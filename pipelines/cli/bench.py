"""`newnormal bench`: speed and accuracy, measured from a checkout (tests/benchmarks)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from engine.errors import NewnormalError
from pipelines.cli.options import Kafka, StateDir

app = typer.Typer(help="Measure speed and accuracy; figures are kept in docs/benchmarks.md.", no_args_is_help=True)
_FOLDER = Path(__file__).parents[2] / "tests" / "benchmarks"


@app.command()
def throughput(
    records: Annotated[int, typer.Option(help="Records of the measured load.")] = 6_000_000,
    keys: Annotated[int, typer.Option(help="Series they are spread over.")] = 10_000,
    out: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Extractor and normalizer beside a hand-written Structured Streaming job, outputs compared."""
    _report(module("throughput").run(records, keys, kafka, state_dir), out)


@app.command()
def latency(
    rate: Annotated[int, typer.Option(help="Records a second.")] = 20_000,
    seconds: Annotated[int, typer.Option(help="Length of the measured part.")] = 60,
    out: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
    state_dir: StateDir = None,
) -> None:
    """The whole chain under a steady load: window end + watermark bound → feature, and → searchable document."""
    _report(module("latency").run(rate, seconds, state_dir), out)


@app.command()
def logs(
    lines: Annotated[int, typer.Option(help="Log lines.")] = 400_000,
    machines: Annotated[int, typer.Option(help="Machines that write them.")] = 1_000,
    out: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
) -> None:
    """Log lines a second on one core: JSON to columns, masking, the templates job, Drain on lines that are all new."""
    _report(module("logs").run(lines, machines), out)


Data = Annotated[Path, typer.Option(help="Folder of the data sets: nab/, cloud_monitoring/, asd/.")]
Out = Annotated[Path, typer.Option(help="Folder for results: figures as JSON, plots, scores.")]


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
    data: Annotated[Path | None, typer.Option(help="Not needed: the data are simulated.")] = None,
    entities: Annotated[int, typer.Option(help="Machines, a fifth of them hosts.")] = 200,
    weeks: Annotated[int, typer.Option(help="Weeks of event time.")] = 6,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 101,
) -> None:
    """Anomaly or new normal? A simulated site with ground truth: found, delay, false alarms, confusion, acceptance."""
    module("kinds").run(out, entities, weeks, seed)


def module(name: str) -> ModuleType:
    """A benchmark of tests/benchmarks."""
    path = _FOLDER / f"{name}.py"
    if not path.exists():
        raise NewnormalError("BENCH_ABSENT", f"{path} is missing", "newnormal bench", "a checkout of the repository")
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", path)
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _report(figures: dict[str, object], out: Path | None) -> None:
    text = json.dumps(figures, indent=2)
    if out:
        out.write_text(text + "\n")
    typer.echo(text)
