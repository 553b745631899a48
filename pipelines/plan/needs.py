"""What a load needs, part by part: cores, memory and disk, and which coefficients these are from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.runtime.shard import ROWS_A_MESSAGE
from pipelines.contracts import topics
from pipelines.jobs.calls.job import MOST_WAITING
from pipelines.jobs.places.job import MOST_MACHINES
from pipelines.plan.coefficients import Coefficients
from pipelines.plan.layout import fitted
from pipelines.plan.load import Load

KEYED = ("extractor", "templates", "detector", "log_detector")
"""Jobs whose state is divided into `engine.shards`."""
JOBS = ("normalizer", "log_normalizer", *KEYED, "incidents", "sink")
"""Jobs that work all the time; the archive is not planned."""
TOPOLOGY = ("places", "calls")
"""Jobs that work every ten seconds."""
_EVERY, _WAITS, _PLACES_DAYS = 10.0, 60.0, 14
"""Seconds between micro-batches of `TOPOLOGY`, seconds for which a span waits, days for which a place is kept."""


@dataclass(frozen=True)
class Need:
    """What one part of a cluster needs.

    Args:
        part: A job, ``kafka:<topic>``, ``elasticsearch``, ``checkpoints``, or another part.
        cores: Cores that are busy all the time.
        memory: Bytes.
        disk: Bytes, with all replicas.
        driven_by: What makes it larger, in words.
        coefficients: Names of the coefficients that it is made of.
    """

    part: str
    cores: float = 0.0
    memory: float = 0.0
    disk: float = 0.0
    driven_by: str = ""
    coefficients: tuple[str, ...] = ()


@dataclass(frozen=True)
class Machines:
    """How machines are to be used, and how large those of Elasticsearch are.

    Args:
        utilization: Share of the cores that the load may use; the rest is for catching up after an outage.
        node_cores: Cores of an Elasticsearch node.
        node_disk: Bytes of disk of an Elasticsearch node.
        partitions: Partitions of each topic, if they are given.
        index_replicas: Copies of each index beside the first; ``None``: as the sink does, one if there are several
            nodes.
    """

    utilization: float = 0.6
    node_cores: int = 8
    node_disk: float = 2e12
    partitions: int | None = None
    index_replicas: int | None = None


@dataclass(frozen=True)
class Plan:
    """A planned cluster.

    Args:
        load: What it is planned for.
        machines: How its machines are used.
        needs: The needs of each part.
        partitions: Partitions of each topic.
        shards: Shards of each job's state.
        nodes: Nodes of Elasticsearch.
        index_replicas: Copies of each index beside the first.
        output: Bytes per second that each job writes, by job.
        episodes: Episodes of novelty per second, which the one shard of the incidents job groups.
    """

    load: Load
    machines: Machines
    needs: tuple[Need, ...]
    partitions: int
    shards: int
    nodes: int
    index_replicas: int
    output: dict[str, float]
    episodes: float

    def total(self, resource: str, prefix: str = "") -> float:
        """The sum of ``cores``, ``memory`` or ``disk`` over all parts whose names begin with a prefix."""
        return sum((float(getattr(need, resource)) for need in self.needs if need.part.startswith(prefix)), 0.0)

    def __getitem__(self, part: str) -> Need:
        """The need of a part."""
        return next(need for need in self.needs if need.part == part)

    @property
    def pipeline_cores(self) -> int:
        """Cores for Spark and Kafka, with the reserve."""
        busy = sum(need.cores for need in self.needs if need.part != "elasticsearch")
        return max(2, math.ceil(busy / self.machines.utilization))


def plan(load: Load, coefficients: Coefficients, machines: Machines | None = None) -> Plan:
    """Plans a cluster for a load.

    Args:
        load: What arrives and what is kept.
        coefficients: What each sample, window, document and series costs.
        machines: How machines are used.
    """
    machines = machines or Machines()
    jobs = (*_jobs(load, coefficients), *_topology(load, coefficients))
    cores = {need.part: need.cores / machines.utilization for need in jobs}
    keyed = max(cores[name] for name in (*KEYED, *TOPOLOGY))
    partitions, shards = fitted(keyed, max(cores.values()), machines.partitions)
    bytes_a_second = _bytes_a_second(load, coefficients, partitions)
    nodes, replicas = _elasticsearch_nodes(load, coefficients, machines)
    needs = (
        *jobs,
        *_processes(coefficients, cores),
        *_kafka(load, coefficients, bytes_a_second),
        _elasticsearch(load, coefficients, nodes, replicas),
        *_stored_state(load, coefficients),
    )
    output = {
        "normalizer": bytes_a_second[topics.TELEMETRY],
        "extractor": bytes_a_second[topics.FEATURES],
        "detector": bytes_a_second[topics.NOVELTIES],
    }
    episodes = load.verdicts * coefficients["stored.novel"]
    return Plan(load, machines, needs, partitions, shards, nodes, replicas, output, episodes)


def documents(load: Load, coefficients: Coefficients) -> float:
    """Verdicts per second that are written to Kafka and Elasticsearch."""
    if load.emit == "all":
        return load.verdicts
    return load.verdicts * (coefficients[f"stored.{load.emit}"] if load.stored is None else load.stored)


def slices(load: Load) -> float:
    """Windows of a series that the extractor holds: the open one, and those that late samples may still change."""
    return 1 + min(load.lateness_ms / load.window_ms, load.lateness_ms / 1_000 * load.events / max(1.0, load.series))


def state(load: Load, coefficients: Coefficients) -> dict[str, float]:
    """Bytes of state by part: ``extractor``, ``detector`` and ``context``, the verdicts that are kept for a while."""
    kept_ms = load.context_before * load.window_ms + load.lateness_ms + load.window_ms
    context = load.verdicts * kept_ms / 1_000 * coefficients["context.state"] if load.emit == "context" else 0.0
    return {
        "extractor": load.series * slices(load) * coefficients["extractor.state"],
        "detector": load.series * coefficients["detector.state"],
        "context": context,
    }


def _jobs(load: Load, coefficients: Coefficients) -> tuple[Need, ...]:
    us, copies = 1e-6, coefficients["state.copies"]
    fixed = coefficients["batch.overhead"] / coefficients["batch.cycle"]
    held, written = state(load, coefficients), documents(load, coefficients)
    batches = ("batch.overhead", "batch.cycle")
    windowing = load.events * coefficients["extractor.sample"] + load.windows * coefficients["extractor.window"]
    judging = f"detector.{load.emit}"
    log_lines = "log lines per second"
    return (
        Need(
            "normalizer", fixed + load.events * coefficients["normalizer.sample"] * us,
            driven_by="samples per second", coefficients=("normalizer.sample", *batches),
        ),
        Need(
            "extractor", fixed + windowing * us, copies * held["extractor"],
            driven_by="samples and windows per second; memory: series × window.allowed_lateness / window.size",
            coefficients=("extractor.sample", "extractor.window", "extractor.state", "state.copies", *batches),
        ),
        Need(
            "detector",
            fixed + load.windows * coefficients[judging] * us, copies * (held["detector"] + held["context"]),
            driven_by="windows per second, detector.emit; memory: series, and verdicts that `context` keeps",
            coefficients=(judging, "detector.state", "context.state", "state.copies", *batches),
        ),
        Need(
            "log_normalizer", fixed + load.lines * coefficients["log_normalizer.line"] * us,
            driven_by=log_lines, coefficients=("log_normalizer.line", *batches),
        ),
        Need(
            "templates", fixed + load.lines * coefficients["templates.line"] * us,
            driven_by=log_lines, coefficients=("templates.line", *batches),
        ),
        Need(
            "log_detector", fixed + load.lines * coefficients["log_detector.line"] * us,
            driven_by=log_lines, coefficients=("log_detector.line", *batches),
        ),
        Need(
            "incidents", fixed + load.verdicts * coefficients["stored.novel"] * coefficients["incidents.episode"] * us,
            driven_by="novelties per second; one shard, whatever engine.shards is",
            coefficients=("incidents.episode", "stored.novel", *batches),
        ),
        Need(
            "sink", fixed + written * coefficients["sink.document"] * us,
            driven_by="documents per second: detector.emit", coefficients=("sink.document", *batches),
        ),
    )  # fmt: skip


def _topology(load: Load, coefficients: Coefficients) -> tuple[Need, ...]:
    """The jobs that infer the topology, with what they write."""
    us, copies, fixed = 1e-6, coefficients["state.copies"], coefficients["batch.overhead"] / 1_000 / _EVERY
    machines, waiting = min(load.machines, MOST_MACHINES), min(load.spans * _WAITS, MOST_WAITING)
    seen = load.events * coefficients["places.sample"] + load.machines / _EVERY * coefficients["places.machine"]
    return (
        Need(
            "places", fixed + seen * us, copies * machines * coefficients["places.state"],
            driven_by="machines, and samples that come through telemetry.agents",
            coefficients=("places.sample", "places.machine", "places.state", "state.copies", "batch.overhead"),
        ),
        Need(
            "calls", fixed + load.spans * coefficients["calls.span"] * us,
            copies * waiting * coefficients["calls.state"],
            driven_by="spans per second", coefficients=("calls.span", "calls.state", "state.copies", "batch.overhead"),
        ),
    )  # fmt: skip


def _processes(coefficients: Coefficients, cores: dict[str, float]) -> tuple[Need, ...]:
    """The memory of processes that hold no keys: it does not depend on the number of series."""
    workers = max(1.0, sum(cores.values()) / 2)
    return (
        Need("spark driver", memory=coefficients["driver.memory"] + coefficients["jvm.memory"],
             driven_by="always", coefficients=("driver.memory", "jvm.memory")),
        Need("python workers", memory=workers * coefficients["workers.memory"],
             driven_by="cores", coefficients=("workers.memory",)),
    )  # fmt: skip


def _bytes_a_second(load: Load, coefficients: Coefficients, partitions: int) -> dict[str, float]:
    """Bytes per second of each topic, without replicas."""

    def columnar(rate: float, name: str, exponent: str) -> float:
        rows = rate * coefficients["batch.cycle"] / 1_000 / partitions
        return (
            rate * coefficients[name] * float((min(max(rows, 1.0), ROWS_A_MESSAGE) / 1_000) ** coefficients[exponent])
        )

    return {
        topics.RAW_JSON: load.events * coefficients["telemetry_json.sample"],
        topics.TELEMETRY: columnar(load.events, "telemetry.sample", "telemetry.exponent"),
        topics.FEATURES: columnar(load.windows, "features.window", "features.exponent"),
        topics.NOVELTIES: documents(load, coefficients) * coefficients["novelties.verdict"],
        topics.LOGS_JSON: load.lines * coefficients["logs_json.line"],
        topics.LOGS: load.lines * coefficients["logs.line"],
        topics.TRACES_AGENTS: load.spans * coefficients["traces.span"],
    }


def _kafka(load: Load, coefficients: Coefficients, rates: dict[str, float]) -> tuple[Need, ...]:
    names = {
        topics.RAW_JSON: ("telemetry_json.sample",),
        topics.TELEMETRY: ("telemetry.sample", "telemetry.exponent"),
        topics.FEATURES: ("features.window", "features.exponent"),
        topics.NOVELTIES: ("novelties.verdict", f"stored.{load.emit}")
        if load.emit != "all"
        else ("novelties.verdict",),
        topics.LOGS_JSON: ("logs_json.line",),
        topics.LOGS: ("logs.line",),
        topics.TRACES_AGENTS: ("traces.span",),
    }
    seconds, driven = load.retention_ms / 1_000, "its messages × kafka.retention × kafka.replication"
    kept = [
        Need(f"kafka:{topic}", disk=rate * seconds * load.replication, driven_by=driven, coefficients=names[topic])
        for topic, rate in rates.items()
    ]
    places = min(load.machines, MOST_MACHINES) * coefficients["places.written"] * _PLACES_DAYS
    segment = int(topics.config(topics.FEATURES, load.retention_ms)["segment.ms"]) / 1_000
    return (
        *kept,
        Need("open segments", disk=sum(rates.values()) * segment * load.replication,
             driven_by="Kafka deletes whole segments, of a seventh of kafka.retention, at most a day"),
        Need("compacted topics",
             disk=(load.judged_series * coefficients["detector_state.series"] + places) * load.replication,
             driven_by="series: detector.state is kept for ever; machines: what is known of places is written each day",
             coefficients=("detector_state.series", "places.written")),
        Need("kafka brokers", memory=load.replication * coefficients["kafka.memory"],
             driven_by="brokers: at least kafka.replication; their CPU time is in that of the jobs",
             coefficients=("kafka.memory",)),
    )  # fmt: skip


def _elasticsearch_nodes(load: Load, coefficients: Coefficients, machines: Machines) -> tuple[int, int]:
    """Nodes and replicas: the sink asks for a replica where there are several nodes."""

    def nodes(replicas: int) -> int:
        need = _elasticsearch(load, coefficients, 0, replicas)
        by_disk = need.disk / (machines.node_disk * 0.8)  # Elasticsearch gives a node no shards beyond 85 %
        by_cores = need.cores / (machines.node_cores * machines.utilization)
        return max(1, replicas + 1, math.ceil(by_disk), math.ceil(by_cores))

    if machines.index_replicas is not None:
        return nodes(machines.index_replicas), machines.index_replicas
    alone = nodes(0)
    return (alone, 0) if alone == 1 else (nodes(1), 1)


def _elasticsearch(load: Load, coefficients: Coefficients, nodes: int, replicas: int) -> Need:
    rate, copies = documents(load, coefficients), 1 + replicas
    return Need(
        "elasticsearch",
        rate * coefficients["elasticsearch.document"] * 1e-6 * copies,
        nodes * coefficients["elasticsearch.memory"],
        rate * load.index_retention_ms / 1_000 * coefficients["elasticsearch.bytes"] * copies,
        "documents per second: detector.emit; disk: retention.indices, replicas",
        ("elasticsearch.document", "elasticsearch.bytes", "elasticsearch.memory"),
    )


def _stored_state(load: Load, coefficients: Coefficients) -> tuple[Need, ...]:
    held = state(load, coefficients)
    versions, parts = coefficients["checkpoint.versions"], ("detector.state", "extractor.state", "context.state")
    return (
        Need("checkpoints", disk=versions * held["detector"] + held["extractor"] + held["context"],
             driven_by="series: the models of all are written with each window; logs of state are written once",
             coefficients=("checkpoint.versions", *parts)),
        Need("spark local", disk=coefficients["local.copies"] * sum(held.values()),
             driven_by="series: RocksDB of the machines that compute", coefficients=("local.copies", *parts)),
    )  # fmt: skip
