"""The benchmarks of accuracy, on recorded data and on simulated sites, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tests.benchmarks.command_line import Data, Out, Report, app, folder_to_read, run_benchmark


@app.command()
def nab(
    data: Data,
    out: Out,
    variations: Annotated[int, typer.Option(help="Random settings around the chosen ones to judge as well.")] = 0,
) -> None:
    """Score the detector on NAB by its official rules; also write OUT/<category>/<file>.csv, NAB's own layout."""
    run_benchmark("nab", None, data, out, variations)


@app.command()
def vus(data: Data, out: Out) -> None:
    """Measure VUS-PR and AUC-PR on cloud_monitoring and ASD, beside simple detectors, with bootstrap intervals."""
    run_benchmark("vus", None, data, out)


@app.command()
def told(
    data: Data,
    out: Out,
    only: Annotated[
        list[str] | None,
        typer.Option(help="web_kpis, nab, cloud_monitoring or asd; repeatable. Default: all that are there."),
    ] = None,
) -> None:
    """Measure what anomalies and incidents tell of recorded series: spans found, delay, false ones, severities.

    False ones are counted a series and month, and a week for a site of all series, beside what was promised. Beside
    it stands what simple scores, one line of arithmetic among them, would find with as many false alarms.
    """
    run_benchmark("told", None, data, out, only or None)


@app.command()
def causes(data: Data, out: Out) -> None:
    """Measure how often incidents name where a recorded fault of services with a call graph began: petshop, nezha.

    Beside it stand two simple rankings of the same machines, how often it is said that none of them is the cause, and
    how often shares are right.
    """
    run_benchmark("causes", None, data, out)


@app.command()
def kubernetes(
    days: Annotated[int, typer.Option(min=2, help="Days of event time.")] = 7,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    gauges: Annotated[
        bool, typer.Option("--gauges", help="The site sends gauges of kube-state-metrics, and no events of Kubernetes.")
    ] = False,
    report: Report = None,
) -> None:
    """Measure what incidents tell of a simulated Kubernetes of 200 pods that roll, scale, crash and are drained."""
    run_benchmark("kubernetes", report, days, seed, gauges)


@app.command()
def wide(
    metrics: Annotated[int, typer.Option(min=64, help="Metrics of each machine.")] = 200,
    machines: Annotated[int, typer.Option(min=1, help="Machines of each kind.")] = 4,
    width: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Metrics of a machine whose cost is measured; repeatable. Default: 10 to 400."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    out: Report = None,
) -> None:
    """Measure simulated machines of many metrics: how well breaks are found, and CPU time and state by metrics."""
    run_benchmark("wide", out, metrics, machines, width or (10, 32, 64, 200, 400), seed)


@app.command()
def kinds(
    out: Out,
    entities: Annotated[int, typer.Option(help="Number of machines; a fifth of them are hosts.")] = 200,
    weeks: Annotated[int, typer.Option(help="Weeks of event time.")] = 6,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 101,
) -> None:
    """Measure on a simulated site how well anomalies and new normals are told apart.

    The figures are: share of injections found, delay, false alarms, confusion of the kinds, and acceptance of new
    levels.
    """
    run_benchmark("kinds", None, out, entities, weeks, seed)


@app.command()
def incidents(
    entities: Annotated[int, typer.Option(min=10, help="Number of machines; a fifth of them are hosts.")] = 25,
    weeks: Annotated[int, typer.Option(min=2, help="Weeks of event time.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    out: Report = None,
) -> None:
    """Measure on a simulated site how many incidents hold exactly one event, with and without a topology."""
    run_benchmark("incidents", out, entities, weeks, seed)


@app.command()
def fleet(
    data: Annotated[
        Path | None, typer.Option(callback=folder_to_read, help="Folder of the data sets, for asd/. Default: without.")
    ] = None,
    machines: Annotated[int, typer.Option(min=20, help="Simulated replicas behind one balancer.")] = 60,
    weeks: Annotated[int, typer.Option(min=2, help="Weeks of event time.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    out: Report = None,
) -> None:
    """Measure machines that become unlike their peers: simulated and recorded ones, beside the robust z of peers."""
    run_benchmark("fleet", out, data, machines, weeks, seed)


@app.command()
def ablation(
    data: Data,
    out: Out,
    datasets: Annotated[
        str, typer.Option(help="Of nab, cloud_monitoring, asd, kinds, with commas between them. Default: all.")
    ] = "",
    only: Annotated[
        str, typer.Option(help="Constants, or how they begin, such as series.weight,regimes. Default: all.")
    ] = "",
    noise: Annotated[int, typer.Option(min=2, help="Random settings whose spread is the noise.")] = 8,
) -> None:
    """Measure what each constant of the models is worth: accuracy with it halved, doubled and its mechanism off.

    OUT/ablation.jsonl keeps each result: a run that was stopped goes on where it was. Two runs with different data sets
    may share a folder.
    """
    run_benchmark("ablation", None, data, out, datasets, only, noise)


@app.command()
def calibration(
    series: Annotated[int, typer.Option(help="Series of each family.")] = 500,
    windows: Annotated[int, typer.Option(help="Windows of each series that are measured.")] = 2000,
    warm: Annotated[int, typer.Option(help="Windows of each series that are learned before.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the values.")] = 1,
    out: Report = None,
) -> None:
    """Measure calibration: how often each stated probability really occurs on stationary series of each family."""
    run_benchmark("calibration", out, series, windows, warm, seed)


@app.command()
def full(
    each: Annotated[int, typer.Option(min=1, help="Simulated series of each shape.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 101,
    data: Annotated[
        Path | None, typer.Option(callback=folder_to_read, help="Folder of recorded data, see told; default: none.")
    ] = None,
    out: Report = None,
) -> None:
    """Measure forecasts of when a gauge is full: what their intervals hold, how wide they are, and what is told.

    Beside them stand straight lines through the last 1, 4 and 24 hours, as `predict_linear` of Prometheus draws them.
    """
    run_benchmark("full", out, each, seed, data)
