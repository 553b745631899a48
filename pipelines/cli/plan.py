"""`newnormal plan`: says how large a cluster must be for a load, from measured coefficients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.plan import advice, coefficients, needs, render
from pipelines.plan.load import EMITS, Load, length, number, whole
from pipelines.plan.render import Prices


def plan(
    events: Annotated[str, typer.Option(help="Samples per second of all series together, e.g. 1e6.")],
    series: Annotated[str, typer.Option(help="Number of series, e.g. 1e6.")],
    window: Annotated[str | None, typer.Option(help="Length of a window. Default: the setting window.size.")] = None,
    retention: Annotated[
        str | None, typer.Option(help="How long Kafka keeps messages. Default: the setting kafka.retention.")
    ] = None,
    index_retention: Annotated[
        str | None, typer.Option(help="How long Elasticsearch keeps documents. Default: retention.indices, or 30d.")
    ] = None,
    emit: Annotated[str | None, typer.Option(help="all, context or novel. Default: the setting detector.emit.")] = None,
    stored: Annotated[
        str | None, typer.Option(help="Share of the verdicts that context or novel writes. Default: the measured one.")
    ] = None,
    replication: Annotated[
        str | None, typer.Option(help="Replicas of a topic. Default: the setting kafka.replication.")
    ] = None,
    metrics: Annotated[str, typer.Option(help="Series of a machine, on average.")] = "10",
    log_lines: Annotated[str, typer.Option(help="Log lines per second.")] = "0",
    spans: Annotated[str, typer.Option(help="Spans of traces per second.")] = "0",
    partitions: Annotated[
        str | None, typer.Option(help="Partitions that your topics have. Default: as many as fit.")
    ] = None,
    utilization: Annotated[
        str, typer.Option(help="Share of the cores that the load may use; the rest is for catching up.")
    ] = "0.6",
    node_cores: Annotated[str, typer.Option(help="Cores of an Elasticsearch node.")] = "8",
    node_disk: Annotated[str, typer.Option(help="Disk of an Elasticsearch node, GiB.")] = "2000",
    index_replicas: Annotated[
        str | None, typer.Option(help="Replicas of an index. Default: 1 if there are several nodes, as the sink does.")
    ] = None,
    core_price: Annotated[str, typer.Option(help="Price of a core per month, in any currency.")] = "0",
    gib_price: Annotated[str, typer.Option(help="Price of a GiB of memory per month.")] = "0",
    disk_price: Annotated[str, typer.Option(help="Price of a GiB of disk per month.")] = "0",
    measured: Annotated[
        Path, typer.Option("--coefficients", help="File that `newnormal bench plan` wrote.")
    ] = coefficients.SHIPPED,
    explain: Annotated[bool, typer.Option("--explain", help="Show each coefficient and where it is from.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object.")] = False,
) -> None:
    """Say how large a cluster must be: partitions, shards, cores, memory, disk, nodes of Elasticsearch.

    It also says what makes each need larger, and which settings follow. Nothing is asked and nothing is started.
    docs/scaling.md says how to read the plan.

    Example: [bold]newnormal plan --events 1e6 --series 1e6 --window 10s --retention 7d[/bold]
    """
    settings = load()
    chosen = emit or settings.detector.emit
    if chosen not in EMITS:
        raise NewnormalError("PLAN_INVALID", f"{chosen!r} cannot be used", "--emit", ", ".join(EMITS))
    index_kept = index_retention or settings.retention.indices or "30d"
    demand = Load(
        events=number(events, "--events", 1e-6),
        series=number(series, "--series", 1),
        window_ms=length(window or settings.window.size, "--window"),
        retention_ms=length(retention or settings.kafka.retention, "--retention"),
        index_retention_ms=length(index_kept, "--index-retention"),
        emit=chosen,
        replication=whole(replication or settings.kafka.replication, "--replication", 1, 7),
        lateness_ms=settings.window.lateness_ms,
        context_before=settings.detector.context_before,
        metrics=number(metrics, "--metrics", 1),
        stored=None if stored is None else number(stored, "--stored", 0, 1),
        lines=number(log_lines, "--log-lines"),
        spans=number(spans, "--spans"),
    )
    machines = needs.Machines(
        utilization=number(utilization, "--utilization", 0.05, 1),
        node_cores=whole(node_cores, "--node-cores", 1, 1_024),
        node_disk=number(node_disk, "--node-disk", 1) * 2**30,
        partitions=None if partitions is None else whole(partitions, "--partitions", 1, 1_024),
        index_replicas=None if index_replicas is None else whole(index_replicas, "--index-replicas", 0, 10),
    )
    prices = Prices(
        number(core_price, "--core-price"), number(gib_price, "--gib-price"), number(disk_price, "--disk-price")
    )
    costs = coefficients.read(measured)
    cluster = needs.plan(demand, costs, machines)
    if as_json:
        typer.echo(visible(json.dumps(render.tree(cluster, costs, prices), ensure_ascii=False)))
        return
    console = Console(highlight=False)
    console.print(render.table(cluster, prices))
    if explain:
        console.print(render.sources(cluster, costs))
    for sentence in (render.layout(cluster), *advice.bottlenecks(cluster, costs)):
        typer.echo(visible(f"- {sentence}"))
    typer.echo(f"\nFor newnormal.toml:\n\n{advice.settings(cluster)}\n")
    typer.echo(visible(f"Coefficients: {costs.machine}, {costs.date}. {costs.source}"))
