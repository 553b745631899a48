"""What a plan says in words: its bottlenecks, and the settings that follow from it as TOML."""

from __future__ import annotations

from engine.runtime.shard import ROWS_A_MESSAGE
from engine.spec.duration import duration_text
from pipelines.contracts.quantities.cells import size
from pipelines.contracts.settings.engine import EngineSettings
from pipelines.contracts.settings.input import InputSettings
from pipelines.jobs.places.job import MOST_MACHINES
from pipelines.plan.coefficients import Coefficients
from pipelines.plan.layout import MOST
from pipelines.plan.needs import JOBS, KEYED, TOPOLOGY, Plan, documents

_ROWS_AT_ONCE = 2_000_000


def bottlenecks(plan: Plan, coefficients: Coefficients) -> list[str]:
    """Sentences on what limits the plan; the first says what needs most of the cores."""
    use = plan.machines.utilization
    jobs = sorted((plan[name] for name in (*JOBS, *TOPOLOGY)), key=lambda need: -need.cores)
    all_cores = plan.total("cores")
    sentences = [f"The {jobs[0].part} needs most CPU time: {jobs[0].cores:,.2f} of {all_cores:,.2f} busy cores."]
    disk = max(plan.needs, key=lambda need: need.disk)
    sentences.append(f"Most of the disk is for {disk.part}: {size(disk.disk)} of {size(plan.total('disk'))}.")
    for name in (*KEYED, *TOPOLOGY):
        if (needed := plan[name].cores / use) > plan.shards:
            sentences.append(
                f"The {name} needs {needed:,.1f} cores, but can use {plan.shards:,} at most: one for each shard. "
                + _more_shards(plan)
            )
    if (most := max(need.cores for need in jobs) / use) > plan.partitions:
        there = f"more than there are partitions ({plan.partitions:,})"
        sentences.append(f"A job needs {most:,.1f} cores, {there}: give more.")
    if plan.load.machines > MOST_MACHINES:
        sentences.append(
            f"Of {plan.load.machines:,.0f} machines {MOST_MACHINES:,} have a place by telemetry; the others have one "
            "if somebody says it (newnormal topology)."
        )
    for name, rate in plan.output.items():
        if rate > coefficients["driver.output"]:
            sentences.append(
                f"The {name} writes {size(rate)} per second; the driver of one machine writes some "
                f"{size(coefficients['driver.output'])} (decision 0019): run it on a cluster, where each shard writes "
                "its own"
                + (', or set detector.emit = "context".' if name == "detector" and plan.load.emit == "all" else ".")
            )
    if plan["incidents"].cores > use:
        sentences.append(
            f"The incidents job groups {plan.episodes:,.0f} novelties per second in one shard, which needs "
            f"{plan['incidents'].cores:,.1f} cores and can use one: raise detector.threshold, or divide the site."
        )
    if plan.load.emit == "all":
        sentences.append(
            f'With detector.emit = "all" Elasticsearch stores {documents(plan.load, coefficients):,.0f} documents a '
            'second; "context" stores those around incidents only.'
        )
    if plan.nodes == 1:
        sentences.append("One Elasticsearch node suffices for the load, but its indices have no replica then.")
    if plan.load.replication == 1:
        sentences.append("Each message is on one Kafka broker only; kafka.replication = 3 survives the loss of one.")
    return sentences


def _more_shards(plan: Plan) -> str:
    if plan.partitions < MOST:
        return f"Plan more partitions than {plan.partitions:,}."
    return f"{MOST:,} is the most; divide the site into several pipelines."


def most_messages(series: float, partitions: int, shards: int) -> int:
    """The setting ``engine.max_records`` with which a shard that catches up has some two million rows at a time.

    Where a window has many series, messages of the jobs are full; as many as usual would need a lot of memory then.

    >>> most_messages(1e6, 4, 2), most_messages(1_000, 4, 2)
    (244, 2000)
    """
    rows = min(ROWS_A_MESSAGE, max(1.0, series / partitions))
    return round(min(EngineSettings().max_records, max(100, shards * _ROWS_AT_ONCE / rows)))


def settings(plan: Plan) -> str:
    """The settings that follow from the plan, as TOML for newnormal.toml."""
    load = plan.load
    return "\n".join(
        [
            "[kafka]",
            f"partitions = {plan.partitions}",
            f"replication = {load.replication}",
            f'retention = "{duration_text(load.retention_ms)}"',
            "",
            "[engine]",
            f"shards = {plan.shards}",
            f"cores = {min(1_024, plan.pipeline_cores)}",
            f"max_records = {most_messages(load.series, plan.partitions, plan.shards)}",
            "",
            "[input]",
            f"max_series = {max(InputSettings().max_series, min(2 * round(load.series), 10**9))}",
            "",
            "[window]",
            f'size = "{duration_text(load.window_ms)}"',
            "",
            "[detector]",
            f'emit = "{load.emit}"',
            "",
            "[retention]",
            f'indices = "{duration_text(load.index_retention_ms)}"',
        ]
    )
