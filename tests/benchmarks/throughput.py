"""Throughput: extractor from the columnar log, and normalizer before it, beside a hand-written job, in one run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from deploy.embedded.services import embedded
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.jobs import chain as jobs
from tests.benchmarks import outputs
from tests.benchmarks.handwritten import by_hand
from tests.benchmarks.load import Load, write_idle, write_json
from tests.benchmarks.queries import Queries, say, session

WARM_UP = 40
FULL, PLAIN = "handwritten", "handwritten_without_quantiles"


def run(records: int, keys: int, kafka: str | None, state_dir: Path | None, warm_up: int = WARM_UP) -> dict[str, Any]:
    """All of it, each query warmed up by so many micro-batches; returns the figures."""
    settings = load(**{"namespace": f"bench{int(time.time())}.", "kafka.bootstrap": kafka, "state_dir": state_dir})
    with embedded(settings, elasticsearch=False) as servers:
        found = servers.settings(settings)
        with session(found) as spark:
            return _measure(Queries(spark, found, warm_up), Load.recent(records, keys))


def _measure(queries: Queries, load: Load) -> dict[str, Any]:
    settings, bootstrap, batch = queries.settings, queries.bootstrap, min(400_000, load.records // 4)
    for name in topics.configs():
        queries.topic(name)
    say(f"writing {load.records:,} records of {load.keys:,} series")
    write_json(bootstrap, queries.topic(topics.RAW_JSON), load)
    others = [topic for topic in jobs.normalizer(settings).source.formats if topic != queries.topic(topics.RAW_JSON)]
    write_idle(bootstrap, others, settings.kafka.partitions)
    rates = {name: queries.theirs(name, by_hand(queries, name == FULL), load.records, batch) for name in (FULL, PLAIN)}
    rates["normalizer"] = queries.ours(topics.TELEMETRY, jobs.normalizer(settings), load.records, batch)
    rates["extractor"] = queries.ours(topics.FEATURES, jobs.extractor(settings), load.records, batch)
    both = 1 / (1 / rates["normalizer"] + 1 / rates["extractor"])
    return {
        "records": load.records,
        "keys": load.keys,
        "records_per_second": {k: round(v) for k, v in rates.items()} | {"normalizer_then_extractor": round(both)},
        "ratio_to_handwritten": {
            "extractor": round(rates["extractor"] / rates[FULL], 2),
            "normalizer_then_extractor": round(both / rates[FULL], 2),
            "extractor_to_without_quantiles": round(rates["extractor"] / rates[PLAIN], 2),
        },
        "outputs": outputs.compare_windows(bootstrap, queries.topic(topics.FEATURES), queries.topic(FULL)),
    }
