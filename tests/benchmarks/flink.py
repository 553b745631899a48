"""Windows beside Flink SQL: the same samples in one Kafka, the same statistics, each program in processes of its own.

Both read with two threads and write each result once, in transactions. Flink reads JSON, and Avro, its most compact
format; ours reads the same JSON, and the columnar log. They take turns; what each wrote is compared, result by
result, with what NumPy computes.
"""

from __future__ import annotations

import json
import os
import platform
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
from engine.kafka.admin import ensure_topics
from engine.runtime.shard import ROWS_A_MESSAGE
from pipelines.contracts.settings import Settings, load
from pipelines.evaluation import show
from tests.benchmarks import outputs
from tests.benchmarks.load import Load, write_columnar, write_json
from tests.benchmarks.peers import flink_environment, flink_sql, own_jobs, runs, samples
from tests.benchmarks.peers.flink_environment import Flink
from tests.benchmarks.peers.runs import Program, Results
from tests.benchmarks.queries import say

WINDOWS = 40
BASE = "Flink SQL, JSON"
BARS = {"ours, JSON": 1.5, "ours, columnar log": 3.0}
"""Ratios to `BASE` that are aimed at."""
_FOLDER = Path(own_jobs.__file__).parent
_SECONDS = 900.0
_NO_MORE = 10**9

Start = Callable[[str, Path], Program]
"""How a way is started: the topic that it writes, and a folder of its own."""


def run(
    records: int, keys: int, turns: int, batch: int, kafka: str | None, state_dir: Path | None, since: float = 0.5
) -> dict[str, Any]:
    """Measures all ways so many times in turn, prints a table; returns the figures.

    Args:
        records: Records of the load.
        keys: Series that they are spread over.
        turns: How often each way is measured.
        batch: Records of one of our micro-batches.
        kafka: A broker; by default an embedded one.
        state_dir: For servers and checkpoints.
        since: Share of the load with which each run warms up.
    """
    flink = flink_environment.ensure()
    given = load(**{"namespace": f"bench{int(time.time())}.", "kafka.bootstrap": kafka, "state_dir": state_dir})
    written = Load.recent(records, keys, span_ms=WINDOWS * samples.WINDOW_MS)
    with embedded(given, elasticsearch=False) as servers:
        settings = servers.settings(given)
        ways = _ways(settings, flink, written, batch)
        true = samples.expected(written)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
        for turn in range(turns):
            for number, (name, start) in enumerate(ways.items()):
                found[name].append(_measured(settings, start, f"{turn}-{number}", true, since))
                say(f"turn {turn + 1}: {name}: {found[name][-1]}")
    figures = {"records": records, "keys": keys, "batch": batch, "machine": machine(), "ways": summary(found)}
    _table(figures)
    return figures


def _ways(settings: Settings, flink: Flink, written: Load, batch: int) -> dict[str, Start]:
    """Writes the load in all formats; returns how each way is started on it."""
    bootstrap, partitions = settings.kafka.bootstrap or "", own_jobs.PARTITIONS
    names = {kind: settings.topic(f"samples.{kind}") for kind in ("json", "avro", "columnar")}
    ensure_topics(bootstrap, {name: {"max.message.bytes": "16000000"} for name in names.values()}, partitions)
    say(f"writing {written.records:,} records of {written.keys:,} series, in three formats")
    write_json(bootstrap, names["json"], written)
    samples.write_avro(bootstrap, names["avro"], written)
    write_columnar(bootstrap, names["columnar"], partitions, written)
    return {
        BASE: partial(_flink, flink, bootstrap, "json", names["json"]),
        "ours, JSON": partial(_ours, bootstrap, batch, "from_json", names["json"]),
        "Flink SQL, Avro": partial(_flink, flink, bootstrap, "avro", names["avro"]),
        "ours, columnar log": partial(_ours, bootstrap, batch, "from_log", names["columnar"]),
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


def _measured(settings: Settings, start: Start, name: str, true: pl.DataFrame, since: float) -> dict[str, Any]:
    """One run: its rate, and whether its results are the true ones."""
    bootstrap, target = settings.kafka.bootstrap or "", settings.topic(f"results.{name}")
    folder = settings.state.absolute() / "bench" / target
    ensure_topics(bootstrap, {target: {"message.timestamp.type": "LogAppendTime"}}, own_jobs.PARTITIONS)
    load_before = os.getloadavg()[0]
    results = runs.run(start(target, folder), bootstrap, target, true.height, folder, _SECONDS)
    rows = parsed(results)
    by_window = rows.group_by("window_end").agg(pl.col("arrived").max(), pl.col("count").sum()).sort("window_end")
    rate = runs.rate(by_window, results, since)
    compared = outputs.compare(rows, true, samples.SERIES, samples.STATISTICS)
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "records_per_second": round(rate.records_per_second),
        "cpu_us_per_record": round(rate.cpu_us_per_record, 2),
        "records": rate.records,
        "load_before": round(load_before, 1),
        "outputs": compared,
    }


def parsed(results: Results) -> pl.DataFrame:
    """Results as a table, with the second in which each arrived; instants as Flink and as we write them."""
    rows = pl.read_ndjson(b"\n".join(results.messages), infer_schema_length=None)
    texts = [name for name in ("window_start", "window_end") if rows[name].dtype == pl.String]
    instants = (pl.col(name).str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="ms").dt.epoch("ms") for name in texts)
    return rows.with_columns(*instants, arrived=pl.Series(results.arrived))


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
