"""The plan of a job in its user's terms: input, time, computation, state, outputs, and cost.

Everything but the cost is taken from the declared job. The cost is what a driver measured, if the job has run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import singledispatch
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.tree import Tree

from engine.operators.chain import Chain
from engine.operators.windows import WindowAggregate
from engine.printing import cell, visible
from engine.spec.duration import duration_text
from engine.spec.job import Job
from engine.spec.operator import Operator
from engine.spec.output import Output
from engine.spec.source import Source
from engine.vectorized.windows.sliced import SlicedWindows

Lines = list[tuple[str, str]]
Measured = Mapping[str, Any]
"""The measurements of a driver, see `pipelines.runtime.job_metrics`."""
UNMEASURED = "not measured yet"


@dataclass(frozen=True)
class Plan:
    """The result of `explain`: sections of lines. ``str`` gives text, rich shows a tree.

    Attributes:
        job: Name of the job.
        sections: Title and lines (term, meaning) of each section.
        shards: Recent measurements of each shard; empty if there are none.
        hot: Keys that dominate, and their share of the records.
    """

    job: str
    sections: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    shards: tuple[Mapping[str, Any], ...] = ()
    hot: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        lines = [self.job]
        for title, section in self.sections:
            lines += [f"  {title}", *(f"    {term}: {meaning}" for term, meaning in section)]
        for row in self.shards:
            lines.append("    " + ", ".join(f"{name} {value}" for name, value in _cells(row).items()))
        lines += [f"    hot key {key}: {share:.0%} of the records" for key, share in self.hot]
        return "\n".join(map(visible, lines))

    def __rich__(self) -> RenderableType:
        tree = Tree(cell(self.job, "bold"))
        for title, section in self.sections:
            branch = tree.add(cell(title, "bold cyan"))
            for term, meaning in section:
                branch.add(cell(f"{term}: {meaning}"))
        if not self.shards:
            return tree
        table = Table(title="shards, over the last micro-batches", title_justify="left")
        for name in _cells(self.shards[0]):
            table.add_column(name, justify="right")
        for row in self.shards:
            table.add_row(*map(cell, _cells(row).values()))
        hot = [cell(f"hot key {key}: {share:.0%} of the records") for key, share in self.hot]
        return Group(tree, table, *hot)


def explain(job: Job, measured: Measured | None = None, shards: int = 2) -> Plan:
    """The plan of a job.

    Args:
        job: The job.
        measured: The measurements of a driver, if there are any.
        shards: Number of shards.
    """
    computes = tuple(describe(job.processor))
    sections = [
        *((f"input {topic}", tuple(_source(source, topic))) for source in job.inputs for topic in source.formats),
        ("key", (("by", ", ".join(job.key) or "none"), ("shard", _shard(job, shards)))),
        ("computes", computes),
        ("output", tuple(_outputs(job))),
        ("stages", tuple(_stages(job, measured, shards))),
    ]
    rows = tuple(measured["shards"]) if measured else ()
    hot = tuple((str(h["key"]), float(h["share"])) for h in measured["hot"]) if measured else ()
    return Plan(job.name, tuple(sections), rows, hot)


@singledispatch
def describe(config: Operator) -> Lines:
    """Describes what an operator does and keeps: the summary of its class, and its settings.

    ``describe.register(MyOperator, function)`` sets the description of a user's own operator.
    """
    summary = (type(config).__doc__ or "").strip().splitlines()
    lines = [("operator", f"{type(config).__name__}: {summary[0]}" if summary else type(config).__name__)]
    if is_dataclass(config):
        settings = ((f.name, getattr(config, f.name)) for f in fields(config) if f.name not in ("key", "time"))
        lines += [(name, _words(value)) for name, value in settings]
    return lines


@describe.register
def _chain(config: Chain) -> Lines:
    """The descriptions of a chain of operators, numbered."""
    numbered = ((number, describe(part)) for number, part in enumerate(config.parts, 1))
    return [(f"{number}. {term}", meaning) for number, lines in numbered for term, meaning in lines]


@describe.register
def _windows(config: WindowAggregate) -> Lines:
    lateness = config.allowed_lateness
    if config.shared:
        length, kept = map(duration_text, (config.sliding.slice_ms, SlicedWindows(config).retention))
        state = f"partials of each key and slice of {length}, for {kept} after its start"
    else:
        state = f"partials of each key and open window, until {duration_text(lateness)} after its end"
    return [
        ("windows", repr(config.window)),
        ("results", repr(config.trigger) if config.trigger else "when the watermark reaches the end of a window"),
        ("panes", type(config.panes).__name__),
        *([("evictor", repr(config.evictor))] if config.evictor else []),
        ("late data", f"up to {duration_text(lateness)} behind the watermark revise their windows"),
        *((name, repr(aggregate)) for name, aggregate in config.aggregates.items()),
        ("state", state),
    ]


def _source(source: Source, topic: str) -> Lines:
    strategy = source.watermark
    waited = sum(name == topic for name, _ in strategy.expected)
    settings = [f"{f.name} {getattr(strategy, f.name)}" for f in fields(strategy) if f.name != "expected"]  # type: ignore[arg-type]
    return [
        ("records", f"{source.record.__name__} by {type(source.formats[topic]).__name__}"),
        *_time(source, f"{type(strategy).__name__} ({', '.join(settings)})"),
        *([("partitions waited for", str(waited))] if waited else []),
        *((("step"), repr(step)) for step in source.steps),
        *([("broadcast", "to all shards")] if source.broadcast else []),
        *([] if source.holds else [("watermark", "of this input is not waited for")]),
    ]


def _time(source: Source, strategy: str) -> Lines:
    if source.clock == "ingestion":
        watermark = f"greatest arrival time of each partition, heartbeats included; {strategy}"
        return [("ingestion time", f"{source.time}, a record's arrival at Kafka"), ("watermark", watermark)]
    if source.clock == "processing":
        return [
            ("processing time", f"{source.time}, the shard's clock when it takes a record in"),
            ("watermark", "the shard's clock: the greatest arrival time that it has seen"),
        ]
    time = f"{source.time}, at most {source.bounds.max_ahead} ahead of its arrival"
    return [("event time", time), ("watermark", strategy)]


def _shard(job: Job, shards: int) -> str:
    return f"CRC-32 of {job.key[0]}, {shards} shards" if job.key else f"{shards} shards"


def _outputs(job: Job) -> Lines:
    def line(name: str, output: Output) -> tuple[str, str]:
        return name, f"{output.topic} ({output.record.__name__}, {output.format}, {output.partitions} partitions)"

    late = line("too late", job.late) if job.late else ("too late", "counted, not written")
    sides = [
        (name, f"{text}; {f'where {side.where}' if side.where else 'what own logic emits to it'}")
        for side in job.side
        for name, text in [line(f"side output {side.name}", side.output)]
    ]
    return [line("results", job.output), *sides, late, line("dead letters", job.dead)]


def _stages(job: Job, measured: Measured | None, shards: int) -> Lines:
    direct = job.direct(shards)
    first = "direct: a message's partition tells its shard" if direct else "decode, check, cut into one blob per shard"
    if measured is None:
        return [("map side", f"{first}; {UNMEASURED}"), ("shards", UNMEASURED), ("whole micro-batch", UNMEASURED)]
    mapped, read, operator, whole = (float(measured[f"{name}_ms"]) for name in ("map", "read", "operator", "batch"))
    rest = max(0.0, whole - mapped - read - operator)
    records, size = float(measured["records_per_batch"]), int(measured["state_bytes"])
    return [
        ("map side", first if direct else f"{first}: {mapped:.0f} ms, reading from Kafka included"),
        ("shards: read", f"{read:.0f} ms"),
        ("shards: operator", f"{operator:.0f} ms, {size / 1e6:.1f} MB of state in all"),
        ("rest: Spark, Kafka, the transaction", f"{rest:.0f} ms"),
        ("whole micro-batch", f"{whole:.0f} ms for {records:.0f} records, median of the last {measured['batches']}"),
    ]


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    names = ("shard", "records", "share", "keys", "open", "timers", "state_bytes", "late", "dead")
    values = ((name, row.get(name)) for name in names)
    return {n: "-" if v is None else f"{v:.0%}" if n == "share" else str(v) for n, v in values}


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {item!r}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return str(value)
