"""The benchmarks of speed, latency and memory as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import Kafka, StateDir
from pipelines.cli.output_files import file_to_write, folder_to_write
from pipelines.plan.coefficients import SHIPPED
from tests.benchmarks.command_line import Report, answering, app, folder_to_read, run_benchmark


@app.command()
def throughput(
    records: Annotated[int, typer.Option(help="Records of the measured load.")] = 6_000_000,
    keys: Annotated[int, typer.Option(help="Series that the records are spread over.")] = 10_000,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure extractor and normalizer beside a hand-written Structured Streaming job, and compare their outputs."""
    run_benchmark("throughput", out, records, keys, answering(kafka, state_dir), state_dir)


@app.command()
def replay(
    records: Annotated[int, typer.Option(help="Records that the extractor reads.")] = 12_000_000,
    keys: Annotated[int, typer.Option(help="Series that the records are spread over.")] = 10_000,
    chain_records: Annotated[int, typer.Option(help="Records that the whole chain reads.")] = 3_000_000,
    out: Report = None,
) -> None:
    """Measure replays: the extractor beside its rate in a warm session, the chain beside its detector alone."""
    run_benchmark("replay", out, records, keys, chain_records)


@app.command()
def pods(
    days: Annotated[int, typer.Option(min=30, help="Simulated days.")] = 365,
    a_day: Annotated[int, typer.Option(min=20, help="Pods that come and go on each day.")] = 2_740,
    report: Report = None,
) -> None:
    """Measure what a site keeps whose pods come and go: a million of them in a simulated year."""
    run_benchmark("pods", report, days, a_day)


@app.command()
def cluster(
    records: Annotated[int, typer.Option(help="Records of the load.")] = 4_000_000,
    keys: Annotated[int, typer.Option(help="Series that the records are spread over.")] = 10_000,
    turns: Annotated[int, typer.Option(min=1, help="How often each is measured, in turn.")] = 2,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure normalizer and extractor on two Spark workers of one core, beside a local Spark with two cores."""
    run_benchmark("cluster", out, records, keys, turns, answering(kafka, state_dir), state_dir)


@app.command()
def checkpoints(
    records: Annotated[int, typer.Option(help="Records of each run.")] = 6_000_000,
    keys: Annotated[int, typer.Option(help="Series that the records are spread over.")] = 100_000,
    out: Report = None,
) -> None:
    """Measure what checkpoints cost the extractor: by Spark's own times, and beside a checkpoint in memory."""
    run_benchmark("checkpoints", out, records, keys)


@app.command()
def savepoints(
    series: Annotated[int, typer.Option(help="Series whose state is kept.")] = 100_000,
    out: Report = None,
) -> None:
    """Measure a savepoint while the jobs run, and the time from kill -9 of the driver to its next result."""
    run_benchmark("savepoints", out, series)


@app.command()
def sink(
    documents: Annotated[int, typer.Option(min=150_000, help="Number of documents.")] = 500_000,
    out: Report = None,
) -> None:
    """Measure how fast documents are stored in Elasticsearch: by the sink alone, and by its job from Kafka."""
    run_benchmark("sink", out, documents)


@app.command()
def latency(
    rate: Annotated[int, typer.Option(help="Records a second.")] = 20_000,
    seconds: Annotated[int, typer.Option(help="Length of the measured part.")] = 60,
    out: Report = None,
    state_dir: StateDir = None,
) -> None:
    """Measure the latency of the whole chain under a steady load.

    The time is measured from the end of a window plus the watermark's bound, to the feature record, and to the document
    that a search can find.
    """
    run_benchmark("latency", out, rate, seconds, state_dir)


@app.command()
def memory(
    series: Annotated[int, typer.Option(min=16, help="Series of the site, with a sample each ten seconds.")] = 1_000,
    minutes: Annotated[float, typer.Option(help="How long it is watched.")] = 5.0,
    small: Annotated[bool, typer.Option("--small", help="As `newnormal run --small`.")] = False,
    out: Report = None,
) -> None:
    """Measure what each process of a pipeline holds, on servers of its own, under the load of a small site."""
    run_benchmark("memory", out, series, minutes, small)


@app.command()
def soak(
    series: Annotated[int, typer.Option(help="Series of the site.")] = 100_000,
    minutes: Annotated[float, typer.Option(min=2, help="Length of the measured part; 5 minutes come before.")] = 30.0,
    log: Annotated[Path | None, typer.Option(callback=folder_to_write, help="Folder for rates and memory.")] = None,
    out: Report = None,
) -> None:
    """Measure whether all jobs hold their rate on a large site that stores context only, and with how much memory."""
    run_benchmark("soak", out, series, minutes, log)


@app.command()
def view(
    series: Annotated[int, typer.Option(help="Series in the view.")] = 1_000_000,
    rate: Annotated[int, typer.Option(help="States a second that are updated meanwhile.")] = 20_000,
    seconds: Annotated[int, typer.Option(help="Length of each measured part.")] = 20,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure how fast the state view answers, in process and over HTTP, while its states are updated."""
    run_benchmark("view", out, series, rate, seconds, answering(kafka, state_dir), state_dir)


@app.command()
def yahoo(
    records: Annotated[int, typer.Option(min=100_000, help="Events of the backlog.")] = 4_000_000,
    rate: Annotated[int, typer.Option(help="Events a second while the latency is measured.")] = 20_000,
    seconds: Annotated[int, typer.Option(min=60, help="For how long that is.")] = 120,
    flink: Annotated[bool, typer.Option("--flink", help="Let Flink SQL do the same afterwards.")] = False,
    out: Report = None,
    state_dir: StateDir = None,
) -> None:
    """Measure Yahoo's streaming benchmark: events a second, and latency until the view has the count of a window."""
    run_benchmark("yahoo", out, records, rate, seconds, flink, state_dir)


@app.command()
def gateway(
    series: Annotated[int, typer.Option(min=2_000, help="Series that are pushed, a multiple of 2,000.")] = 100_000,
    seconds: Annotated[int, typer.Option(help="Length of each measured part.")] = 15,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure how many samples a second the gateway takes until Kafka has acknowledged them, for each protocol.

    The load comes from this machine and goes to its loopback address only.
    """
    run_benchmark("gateway", out, series, seconds, answering(kafka, state_dir), state_dir)


@app.command()
def logs(
    lines: Annotated[int, typer.Option(help="Log lines.")] = 400_000,
    machines: Annotated[int, typer.Option(help="Machines that write the lines.")] = 1_000,
    data: Annotated[
        Path | None,
        typer.Option(
            callback=folder_to_read, help="Folder of recorded logs with true templates, or one that holds loghub/."
        ),
    ] = None,
    out: Report = None,
) -> None:
    """Measure log lines per second on one core, and the templates of recorded logs.

    Four parts are timed: JSON to columns, masking, the job that mines templates, and lines without a known template.
    With --data: for each system the grouping accuracy, the kinds of lines that were new without being so, and the
    time a line.
    """
    run_benchmark("logs", out, lines, machines, data)


@app.command()
def engine(
    part: Annotated[
        list[str] | None, typer.Option(help="windows, process, sliding or growth; repeatable. Default: all.")
    ] = None,
    keys: Annotated[
        list[int] | None, typer.Option(help="Number of series; repeatable. Default: 10,000 and then 100,000.")
    ] = None,
    records: Annotated[
        int | None, typer.Option(help="Records of each load. Default: each part has its own number.")
    ] = None,
    out: Report = None,
    plot: Annotated[
        Path | None, typer.Option(callback=file_to_write, help="Write a plot of the growth of state and time here.")
    ] = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure the engine beside jobs written by hand: windows, a stateful process, sliding windows.

    The part growth measures how state and time grow with the number of keys.
    """
    run_benchmark("engine", out, part or None, keys or None, records, answering(kafka, state_dir), state_dir, plot)


@app.command()
def flink(
    records: Annotated[int, typer.Option(min=200_000, help="Records that count; half as many warm up.")] = 6_000_000,
    keys: Annotated[int, typer.Option(min=1, help="Series that the records are spread over.")] = 10_000,
    turns: Annotated[int, typer.Option(min=1, help="How often each way is measured, in turn.")] = 3,
    batch: Annotated[int, typer.Option(min=10_000, help="Records of one of our micro-batches.")] = 800_000,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure windows beside Flink SQL, from JSON and from its and our compact format, and compare all results.

    Flink is installed into an environment of its own if it is not there yet: 800 MB, some minutes, once.
    """
    run_benchmark("flink", out, records, keys, turns, batch, answering(kafka, state_dir), state_dir)


@app.command()
def microbatch(
    seconds: Annotated[int, typer.Option(help="Length of each measured part.")] = 60,
    warm: Annotated[int, typer.Option(help="Seconds under load before.")] = 120,
    rate: Annotated[int, typer.Option(help="Records a second of the little load.")] = 1000,
    out: Report = None,
    state_dir: StateDir = None,
) -> None:
    """Measure what a micro-batch of each job costs, by part: CPU and wall time, with a little load and with none."""
    run_benchmark("microbatch", out, seconds, warm, rate, state_dir)


@app.command()
def model(
    series: Annotated[int, typer.Option(help="Series judged together.")] = 10_000,
    seconds: Annotated[float, typer.Option(help="Length of the measured part.")] = 20.0,
    windows: Annotated[int, typer.Option(help="Windows of each series in one call: more than 1 is a history.")] = 1,
    out: Report = None,
) -> None:
    """Measure the model alone: values judged and learned per second on one core, and bytes of state per series."""
    run_benchmark("model", out, series, seconds, windows)


@app.command()
def detector(
    keys: Annotated[int, typer.Option(help="Number of series; each machine has ten.")] = 10_000,
    windows: Annotated[int, typer.Option(help="Windows of each series.")] = 240,
    out: Report = None,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure the detector on Spark beside the models alone, and compare their verdicts.

    The detector reads columnar features; it is measured once writing all verdicts, and once writing only novelties.
    """
    run_benchmark("detector", out, keys, windows, answering(kafka, state_dir), state_dir)


@app.command()
def shard(
    keys: Annotated[int, typer.Option(help="Number of series; half of them are in the shard.")] = 10_000,
    windows: Annotated[int, typer.Option(help="Windows of each series.")] = 60,
    batch: Annotated[int, typer.Option(help="Windows of a micro-batch.")] = 20,
    emit: Annotated[str, typer.Option(help="The setting detector.emit: all, context or novel.")] = "all",
    outliers: Annotated[float, typer.Option(help="Share of the values that are outliers.")] = 0.001,
    out: Report = None,
) -> None:
    """Measure one shard of the detector job without Spark: CPU time per row of decoding, operator and messages."""
    run_benchmark("shard", out, keys, windows, batch, emit, outliers)


@app.command()
def slices(
    keys: Annotated[list[int] | None, typer.Option(help="Numbers of keys; once for each.")] = None,
    count: Annotated[int, typer.Option(min=2, help="Slices of each window.")] = 1440,
    compared: Annotated[int, typer.Option(min=1, help="Keys with which both ways are compared.")] = 50,
    out: Report = None,
) -> None:
    """Measure a live minute of sliding windows of many slices, beside the same windows kept one by one."""
    run_benchmark("slices", out, keys, count, compared)


@app.command()
def large(
    keys: Annotated[int, typer.Option(min=1_000, help="Number of series; half of them are in the shard.")] = 100_000,
    emit: Annotated[str, typer.Option(help="The setting detector.emit: all, context or novel.")] = "novel",
    out: Report = None,
) -> None:
    """Measure one shard of extractor and detector: a micro-batch that touches 1 % of the series beside one of all."""
    run_benchmark("large", out, keys, emit)


@app.command()
def plan(
    records: Annotated[
        int, typer.Option(min=1_000_000, help="Records of each load of extractor and normalizer.")
    ] = 4_000_000,
    documents: Annotated[int, typer.Option(min=150_000, help="Documents that the sink stores.")] = 300_000,
    lines: Annotated[int, typer.Option(min=10_000, help="Log lines.")] = 200_000,
    out: Annotated[
        Path, typer.Option(callback=file_to_write, help="File of coefficients; the default ships with the package.")
    ] = SHIPPED,
    kafka: Kafka = None,
    state_dir: StateDir = None,
) -> None:
    """Measure the coefficients of [bold]newnormal plan[/bold], at two numbers of series, by the other benchmarks."""
    run_benchmark("plan", out, records, documents, lines, answering(kafka, state_dir), state_dir)


@app.command()
def decoders(
    records: Annotated[int, typer.Option(help="Samples or log lines of each format.")] = 100_000,
    formats: Annotated[str, typer.Option(help="Names of formats with commas between them. Default: all.")] = "",
    out: Report = None,
) -> None:
    """Measure how fast each input format is decoded, in samples or log lines a second of one core's CPU time."""
    run_benchmark("decoders", out, records, formats)
