"""A plan as a table for people, with the costs at the user's prices, and as a tree for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from engine.printing import cell
from pipelines.contracts.quantities.cells import size
from pipelines.plan.advice import bottlenecks, settings
from pipelines.plan.coefficients import UNITS, Coefficients
from pipelines.plan.needs import Need, Plan

GIB = 2**30


@dataclass(frozen=True)
class Prices:
    """Prices per month, in any one currency.

    Args:
        core: Of a core.
        gib: Of a GiB of memory.
        disk: Of a GiB of disk.
    """

    core: float = 0.0
    gib: float = 0.0
    disk: float = 0.0

    @property
    def any_known(self) -> bool:
        """Whether any price is known."""
        return bool(self.core or self.gib or self.disk)

    def of(self, need: Need, utilization: float) -> float:
        """Money per month of a part; its cores are paid with the reserve.

        >>> Prices(core=10, gib=2, disk=0.1).of(Need("sink", cores=3, memory=2**30, disk=10 * 2**30), 0.5)
        63.0
        """
        cores = need.cores / utilization * self.core
        return cores + need.memory / GIB * self.gib + need.disk / GIB * self.disk

    def total(self, plan: Plan) -> float:
        """Money per month of all parts."""
        return sum(self.of(need, plan.machines.utilization) for need in plan.needs)


def table(plan: Plan, prices: Prices) -> Table:
    """What each part needs; with prices also its cost per month."""
    shown = Table(title="What each part needs", title_justify="left")
    shown.add_column("part", no_wrap=True)
    for name in ("busy cores", "memory", "disk", *(["per month"] if prices.any_known else [])):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("driven by")
    for need in (need for need in plan.needs if need.cores or need.memory or need.disk):
        shown.add_row(*_cells(need, plan, prices), cell(need.driven_by))
    total = Need("all", plan.total("cores"), plan.total("memory"), plan.total("disk"))
    shown.add_section()
    shown.add_row(*_cells(total, plan, prices), "")
    return shown


def _cells(need: Need, plan: Plan, prices: Prices) -> list[Any]:
    texts = [
        need.part,
        f"{need.cores:,.2f}" if need.cores else "",
        *(size(n) if n else "" for n in (need.memory, need.disk)),
    ]
    if prices.any_known:
        texts.append(f"{prices.of(need, plan.machines.utilization):,.2f}")
    return [cell(text) for text in texts]


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
        cost = {"cost": round(prices.of(need, plan.machines.utilization), 2)} if prices.any_known else {}
        needs.append(asdict(need) | {"coefficients": of} | cost)
    return {
        "load": asdict(plan.load),
        "partitions": plan.partitions,
        "shards": plan.shards,
        "cores": plan.pipeline_cores,
        "elasticsearch_nodes": plan.nodes,
        "index_replicas": plan.index_replicas,
        "total": {what: plan.total(what) for what in ("cores", "memory", "disk")},
        **({"cost": round(prices.total(plan), 2)} if prices.any_known else {}),
        "needs": needs,
        "bottlenecks": bottlenecks(plan, coefficients),
        "settings": settings(plan),
        "coefficients": {name: getattr(coefficients, name) for name in ("machine", "date", "command", "source")},
    }
