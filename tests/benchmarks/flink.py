"""Windows beside Flink SQL: the same samples in one Kafka, the same statistics, each program in processes of its own.

Both read with two threads and write each result once, in transactions. Flink reads JSON, and Avro, its most compact
format; ours reads the same JSON, and the columnar log. They take turns; each is warm when the records that count appear
in Kafka, all at one moment. What each wrote is compared, result by result, with what NumPy computes.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import psutil

from deploy.artifacts import KAFKA
from deploy.embedded.services import embedded
from engine.kafka.admin import delete_topics, ensure_topics
from engine.runtime.shard import ROWS_A_MESSAGE
from pipelines.contracts.settings import Settings, load
from pipelines.evaluation import show
from tests.benchmarks import outputs
from tests.benchmarks.load import Load
from tests.benchmarks.peers import flink_environment, flink_sql, own_jobs, runs, samples
from tests.benchmarks.peers.feed import Feed
from tests.benchmarks.peers.flink_environment import Flink
from tests.benchmarks.peers.runs import Program
from tests.benchmarks.queries import say

WINDOWS = 9
BASE = "Flink SQL, JSON"
BARS = {"ours, JSON": 1.5, "ours, columnar log": 3.0}
"""Ratios to `BASE` that are aimed at."""
_FOLDER = Path(own_jobs.__file__).parent
_SECONDS = 600.0
_NO_MORE = 10**9

Start = Callable[[str, str, Path], Program]
"""How a way is started: the topic that it reads, the one that it writes, and a folder of its own."""


def run(records: int, keys: int, turns: int, batch: int, kafka: str | None, state_dir: Path | None) -> dict[str, Any]:
    """Measures all ways so many times in turn, prints a table; returns the figures.

    Args:
        records: Records that count; half as many warm up before them.
        keys: Series that they are spread over.
        turns: How often each way is measured.
        batch: Records of one of our micro-batches.
        kafka: A broker; by default an embedded one.
        state_dir: For servers and checkpoints.
    """
    flink = flink_environment.ensure()
    given = load(**{"namespace": f"bench{int(time.time())}.", "kafka.bootstrap": kafka, "state_dir": state_dir})
    warm = records // 2
    written = Load.recent(records + warm, keys, span_ms=WINDOWS * samples.WINDOW_MS)
    true = samples.expected(written)
    found: dict[str, list[dict[str, Any]]] = {}
    with embedded(given, elasticsearch=False) as servers:
        settings = servers.settings(given)
        for turn in range(turns):
            for name, (kind, start) in _ways(settings.kafka.bootstrap or "", flink, batch).items():
                topic = settings.topic(f"turn{turn}.{re.sub('[^a-z]', '-', name.lower())}")
                found.setdefault(name, []).append(_measured(settings, kind, start, topic, written, warm, true))
                say(f"turn {turn + 1}: {name}: {found[name][-1]}")
    figures = {"records": records, "keys": keys, "batch": batch, "machine": machine(), "ways": summary(found)}
    _table(figures)
    return figures


def _ways(bootstrap: str, flink: Flink, batch: int) -> dict[str, tuple[str, Start]]:
    """The format that each way reads, and how it is started."""
    return {
        BASE: ("json", partial(_flink, flink, bootstrap, "json")),
        "ours, JSON": ("json", partial(_ours, bootstrap, batch, "from_json")),
        "Flink SQL, Avro": ("avro", partial(_flink, flink, bootstrap, "avro")),
        "ours, columnar log": ("columnar", partial(_ours, bootstrap, batch, "from_log")),
    }


def _flink(flink: Flink, bootstrap: str, kind: str, source: str, target: str, folder: Path) -> Program:
    given = {
        "options": flink_sql.options(flink, folder),
        "statements": flink_sql.statements(bootstrap, kind, source, target),
    }
    return Program([str(flink.python), str(_FOLDER / "flink_program.py")], json.dumps(given))


def _ours(bootstrap: str, batch: int, job: str, source: str, target: str, folder: Path) -> Program:
    """`newnormal run own_jobs.py:JOB`, with as many threads as Flink has, and large micro-batches."""
    given = {
        "CORES": 2,
        "MAX_MESSAGES": batch,
        "MAX_RECORDS": max(own_jobs.PARTITIONS, batch // ROWS_A_MESSAGE),
        "MAX_BYTES": _NO_MORE,
    }
    command = [sys.executable, "-m", "pipelines.cli.main", "run", f"{own_jobs.__file__}:{job}"]
    namespace, state = target.replace(".", "-") + ".", str(folder / "state")
    command += ["--kafka", bootstrap, "--namespace", namespace, "--state-dir", state]
    environment = {f"NEWNORMAL_ENGINE__{name}": str(value) for name, value in given.items()}
    return Program(command, environment=environment | {"PEER_SAMPLES": source, "PEER_RESULTS": target})


def _measured(
    settings: Settings, kind: str, start: Start, topic: str, written: Load, warm: int, true: pl.DataFrame
) -> dict[str, Any]:
    """One run: its rate, and whether its results are the true ones."""
    bootstrap, partitions = settings.kafka.bootstrap or "", own_jobs.PARTITIONS
    source, target, folder = f"{topic}.samples", f"{topic}.results", settings.state.absolute() / "bench" / topic
    wanted = {source: {"max.message.bytes": "16000000"}, target: {"message.timestamp.type": "LogAppendTime"}}
    ensure_topics(bootstrap, wanted, partitions)
    load_before = os.getloadavg()[0]
    feed = Feed(bootstrap, source, partitions, kind, written, warm)
    warmed = written.begin + written.span_ms * warm // written.records - 2 * samples.WINDOW_MS
    expected = true.filter(pl.col("window_end") < warmed).height, true.height
    results = runs.run(start(source, target, folder), bootstrap, feed, target, expected, folder, _SECONDS)
    compared = outputs.compare(parsed(results.messages), true, samples.SERIES, samples.STATISTICS)
    shutil.rmtree(folder, ignore_errors=True)
    delete_topics(bootstrap, list(wanted))
    count = written.records - warm
    return {
        "records_per_second": round(count / results.seconds),
        "cpu_us_per_record": round(1e6 * results.cpu_seconds / count, 2),
        "load_before": round(load_before, 1),
        "outputs": compared,
    }


def parsed(messages: Sequence[bytes]) -> pl.DataFrame:
    """Results as a table; instants as Flink writes them, and as we do."""
    rows = pl.read_ndjson(b"\n".join(messages), infer_schema_length=None)
    texts = [name for name in ("window_start", "window_end") if rows[name].dtype == pl.String]
    instants = (pl.col(name).str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="ms").dt.epoch("ms") for name in texts)
    return rows.with_columns(*instants)


def summary(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The median of each way's runs, and its ratio to `BASE` in the same turn, also the median."""
    figures: dict[str, Any] = {}
    for name, each in found.items():
        told: dict[str, Any] = {"turns": list(each), "equal": all(run["outputs"]["equal"] for run in each)}
        for what in ("records_per_second", "cpu_us_per_record"):
            ratios = [run[what] / base[what] for run, base in zip(each, found[BASE], strict=True)]
            told[what] = median(run[what] for run in each)
            told[f"{what}_ratio"] = round(median(ratios), 2)
        figures[name] = told | ({"bar": BARS[name]} if name in BARS else {})
    return figures


def machine() -> dict[str, str]:
    """What it was measured on, and with."""
    model = next((line.partition(":")[2].strip() for line in _cpu_info() if line.startswith("model name")), "")
    return {
        "processor": f"{os.cpu_count()} x {model or platform.machine()}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "load": f"{os.getloadavg()[0]:.1f}",
        "versions": f"Flink {flink_environment.VERSION}, Spark {version('pyspark')}, Newnormal {version('newnormal')}, "
        f"Kafka {KAFKA.version}, Python {platform.python_version()}",
    }


def _cpu_info() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def _table(figures: Mapping[str, Any]) -> None:
    rows = [
        [
            name,
            f"{told['records_per_second']:,.0f}",
            f"{told['records_per_second_ratio']:.2f}",
            str(told.get("bar", "")),
            f"{told['cpu_us_per_record']:.2f}",
            f"{told['cpu_us_per_record_ratio']:.2f}",
            "equal" if told["equal"] else "DIFFERENT",
        ]
        for name, told in figures["ways"].items()
    ]
    columns = ["way", "records/s", f"to {BASE}", "bar", "CPU us a record", f"to {BASE}", "results"]
    show.table(f"Windows beside Flink SQL; {', '.join(figures['machine'].values())}", columns, rows)
