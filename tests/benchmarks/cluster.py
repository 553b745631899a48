"""Two Spark workers with one core each in a standalone cluster, beside a local Spark with two cores: the same jobs.

On the cluster each shard writes its own output, and the driver writes that of all. All three are measured in turn, in
sessions of their own, each query warmed up. What they wrote is compared window by window.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from deploy.embedded.services import embedded
from engine.kafka.admin import ensure_topics
from engine.spark.cluster import Cluster
from engine.spark.workers import check_workers
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.evaluation import show
from pipelines.jobs import chain as jobs
from tests.benchmarks import outputs
from tests.benchmarks.load import Load, write_columnar, write_idle, write_json
from tests.benchmarks.queries import Queries, say, session
from tests.chaos.cluster import StandaloneCluster, standalone

WARM_UP, WORKERS = 40, 2
BAR = 0.8
"""The ratio of the rates that is aimed at."""
JOBS = ("normalizer", "extractor")
LOCAL, CLUSTER, BY_DRIVER = PLACES = "local", "cluster", "cluster_by_driver"


def run(
    records: int, keys: int, turns: int, kafka: str | None, state_dir: Path | None, warm_up: int = WARM_UP
) -> dict[str, Any]:
    """Measures all so many times in turn, prints a table; returns the figures.

    Args:
        records: Records of the load.
        keys: Series that they are spread over.
        turns: How often each is measured.
        kafka: A broker; by default an embedded one.
        state_dir: For servers and checkpoints.
        warm_up: Micro-batches of each query's warm-up.
    """
    settings = load(**{"namespace": f"bench{int(time.time())}.", "kafka.bootstrap": kafka, "state_dir": state_dir})
    rates: dict[str, dict[str, list[float]]] = {place: {job: [] for job in JOBS} for place in PLACES}
    with embedded(settings, elasticsearch=False) as servers:
        found, written = servers.settings(settings), Load.recent(records, keys)
        _write(found, written)
        with standalone(found.state / "bench" / "standalone", WORKERS) as machines:
            for turn in range(turns):
                for place in PLACES:
                    say(f"turn {turn + 1}: {place}")
                    measured = _measured(_writing(found, place), written, machines, place, turn, warm_up)
                    for job, rate in measured.items():
                        rates[place][job].append(rate)
        figures = _figures(written, rates)
        names = [_target(found, place, turns - 1, "extractor") for place in (CLUSTER, LOCAL)]
        (mine, _), (theirs, _) = (outputs.windows(found.kafka.bootstrap or "", name) for name in names)
    figures["outputs"] = outputs.compare(mine, theirs, [*outputs.SERIES, "window_start"], outputs.STATISTICS)
    _table(figures)
    return figures


def _write(settings: Settings, written: Load) -> None:
    """The records as JSON, for the normalizer, and as a columnar log, for the extractor."""
    bootstrap, partitions = settings.kafka.bootstrap or "", settings.kafka.partitions
    say(f"writing {written.records:,} records of {written.keys:,} series, twice")
    ensure_topics(bootstrap, {settings.topic(name): config for name, config in topics.configs().items()}, partitions)
    write_json(bootstrap, settings.topic(topics.RAW_JSON), written)
    write_columnar(bootstrap, settings.topic(topics.TELEMETRY), partitions, written)
    sources = jobs.normalizer(settings).source.formats
    write_idle(bootstrap, [topic for topic in sources if topic != settings.topic(topics.RAW_JSON)], partitions)


def _measured(
    settings: Settings, written: Load, machines: StandaloneCluster, place: str, turn: int, warm_up: int
) -> dict[str, float]:
    """Records a second of each job in a session of its own: on a cluster, or in this process."""
    made = {"normalizer": jobs.normalizer(settings), "extractor": jobs.extractor(settings)}
    batch, local = min(400_000, written.records // 4), place == LOCAL
    with session(settings, cluster=None if local else Cluster(machines.url)) as spark:
        queries = Queries(spark, settings, warm_up)
        if not local:
            check_workers(spark, queries.work / "checkpoints", queries.bootstrap, jobs.MODULES)
            assert len(machines.executors()) == WORKERS, "each worker has an executor"
        return {name: queries.ours(f"{place}.{turn}.{name}", job, written.records, batch) for name, job in made.items()}


def _writing(settings: Settings, place: str) -> Settings:
    """The settings with which the results are written by whom they are to be."""
    output = "driver" if place == BY_DRIVER else "auto"
    return settings.model_copy(update={"engine": settings.engine.model_copy(update={"output": output})})


def _target(settings: Settings, place: str, turn: int, job: str) -> str:
    """The topic that a job has written."""
    return settings.topic(f"{place}.{turn}.{job}")


def _figures(written: Load, rates: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """Means over the turns, and what both jobs together would do one after the other."""
    means = {place: {job: sum(each) / len(each) for job, each in of.items()} for place, of in rates.items()}
    for of in means.values():
        of["both"] = 1 / sum(1 / of[job] for job in JOBS)
    return {
        "records": written.records,
        "keys": written.keys,
        "records_per_second": {place: {job: round(rate) for job, rate in of.items()} for place, of in means.items()},
        "of_each_turn": {place: {job: [round(r) for r in of[job]] for job in JOBS} for place, of in rates.items()},
        "ratio": {job: round(means[CLUSTER][job] / means[LOCAL][job], 2) for job in means[LOCAL]},
        "ratio_by_driver": {job: round(means[BY_DRIVER][job] / means[LOCAL][job], 2) for job in means[LOCAL]},
        "bar": BAR,
    }


def _table(figures: dict[str, Any]) -> None:
    rates, same = figures["records_per_second"], "equal" if figures["outputs"]["equal"] else "DIFFERENT"
    rows = [
        [job, *(f"{rates[place][job]:,}" for place in PLACES), f"{ratio:.2f}", str(BAR), same]
        for job, ratio in figures["ratio"].items()
    ]
    show.table(
        "Two workers of one core",
        ["job", "local[2], records/s", "cluster", "its driver writes", "ratio", "bar", "windows"],
        rows,
    )
