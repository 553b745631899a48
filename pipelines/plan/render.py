"""A plan as a table for people, and as a tree for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.table import Table

from dashboards.quantities import size
from engine.explain.printing import cell
from pipelines.plan.advice import bottlenecks, settings
from pipelines.plan.coefficients import UNITS, Coefficients
from pipelines.plan.needs import Need, Plan
from pipelines.plan.prices import Prices


def table(plan: Plan, prices: Prices) -> Table:
    """What each part needs; with prices also its cost a month."""
    shown = Table(title="What each part needs", title_justify="left")
    shown.add_column("part", no_wrap=True)
    for name in ("busy cores", "memory", "disk", *(["a month"] if prices.given else [])):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("driven by")
    for need in (need for need in plan.needs if need.cores or need.memory or need.disk):
        shown.add_row(*_cells(need, plan, prices), cell(need.driven_by))
    total = Need("all", plan.total("cores"), plan.total("memory"), plan.total("disk"))
    shown.add_section()
    shown.add_row(*_cells(total, plan, prices), "")
    return shown


def _cells(need: Need, plan: Plan, prices: Prices) -> list[Any]:
    found = [
        need.part,
        f"{need.cores:,.2f}" if need.cores else "",
        *(size(n) if n else "" for n in (need.memory, need.disk)),
    ]
    if prices.given:
        found.append(f"{prices.of(need, plan.machines.utilization):,.2f}")
    return [cell(text) for text in found]


def sources(plan: Plan, coefficients: Coefficients) -> Table:
    """The coefficients that the plan is made of, with their units and where they are from."""
    shown = Table(title="Coefficients", title_justify="left")
    shown.add_column("coefficient", no_wrap=True)
    shown.add_column("value", justify="right", no_wrap=True)
    shown.add_column("unit")
    shown.add_column("from")
    for name in dict.fromkeys(name for need in plan.needs for name in need.coefficients):
        shown.add_row(
            cell(name), cell(f"{coefficients[name]:,.6g}"), cell(UNITS[name]), cell(coefficients.values[name].source)
        )
    return shown


def layout(plan: Plan) -> str:
    """The numbers to decide, in a sentence."""
    copies = f"{plan.index_replicas} replica{'s' * (plan.index_replicas != 1)}"
    brokers, nodes = "s" * (plan.load.replication != 1), "s" * (plan.nodes != 1)
    return (
        f"{plan.partitions:,} partitions, {plan.shards:,} shards; {plan.pipeline_cores:,} cores for Spark and Kafka, "
        f"of which {plan.machines.utilization:.0%} are used; {plan.load.replication} Kafka broker{brokers} or more; "
        f"{plan.nodes:,} Elasticsearch node{nodes} with {copies}."
    )


def tree(plan: Plan, coefficients: Coefficients, prices: Prices) -> dict[str, Any]:
    """The whole plan as JSON has it; memory and disk in bytes."""
    needs = []
    for need in plan.needs:
        of = {name: {"unit": UNITS[name], **asdict(coefficients.values[name])} for name in need.coefficients}
        cost = {"cost": round(prices.of(need, plan.machines.utilization), 2)} if prices.given else {}
        needs.append(asdict(need) | {"coefficients": of} | cost)
    return {
        "load": asdict(plan.load),
        "partitions": plan.partitions,
        "shards": plan.shards,
        "cores": plan.pipeline_cores,
        "elasticsearch_nodes": plan.nodes,
        "index_replicas": plan.index_replicas,
        "total": {what: plan.total(what) for what in ("cores", "memory", "disk")},
        **({"cost": round(prices.total(plan), 2)} if prices.given else {}),
        "needs": needs,
        "bottlenecks": bottlenecks(plan, coefficients),
        "settings": settings(plan),
        "coefficients": {name: getattr(coefficients, name) for name in ("machine", "date", "command", "source")},
    }
