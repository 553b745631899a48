"""The benchmark beside Flink SQL: how it measures and compares; with Flink, where it is installed, that both agree."""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from tests.benchmarks import flink, outputs
from tests.benchmarks.load import Load
from tests.benchmarks.peers import flink_environment, runs, samples
from tests.benchmarks.peers.feed import Feed
from tests.benchmarks.peers.runs import Program, Results
from tests.benchmarks.peers.samples import avro

LOAD = Load(records=200, keys=20, begin=1_795_946_400_000)
FLINKS = (
    b'{"entity":"host-1","metric":"metric.2","window_start":"2026-11-29 10:00:00",'
    b'"window_end":"2026-11-29 10:00:10.000","count":3,"sum":6.0,"mean":2.0,"std":1.0,"min":1.0,"max":3.0}'
)
OURS = (
    b'{"entity":"host-1","metric":"metric.2","window_start":1795946400000,"window_end":1795946410000,'
    b'"count":3,"sum":6.0,"mean":2.0,"std":1.0,"min":1.0,"max":3.0}'
)


def test_results_of_both_programs_are_read_as_the_same_rows() -> None:
    assert flink.parsed([FLINKS]).equals(flink.parsed([OURS]))
    assert flink.parsed([FLINKS])["window_end"].to_list() == [1_795_946_410_000]


def test_the_expected_statistics_are_those_of_the_samples_one_by_one() -> None:
    load = Load(records=600, keys=20, span_ms=30_000, begin=1_795_946_400_000)
    values = defaultdict[tuple[str, str, int], list[float]](list)
    for chunk in load.chunks():
        for row in chunk.filter(pl.col("entity").str.starts_with("host")).iter_rows(named=True):
            values[row["entity"], row["metric"], row["time"] // 10_000 * 10_000].append(row["value"])
    one_by_one = pl.DataFrame(
        {
            "entity": entity,
            "metric": metric,
            "window_start": start,
            "window_end": start + 10_000,
            "count": len(each),
            "sum": math.fsum(each),
            "mean": statistics.fmean(each),
            "std": statistics.stdev(each),
            "min": min(each),
            "max": max(each),
        }
        for (entity, metric, start), each in values.items()
    )
    assert one_by_one.height == 60
    assert outputs.compare(samples.expected(load), one_by_one, samples.SERIES, samples.STATISTICS)["equal"]


def test_a_summary_has_medians_and_ratios_within_a_turn() -> None:
    """The machine is half as fast in the third turn; ours stays twice as fast as Flink there as well."""

    def told(rate: int, cpu: float, equal: bool = True) -> dict[str, object]:
        return {"records_per_second": rate, "cpu_us_per_record": cpu, "outputs": {"equal": equal}}

    found = {
        flink.BASE: [told(300, 9.0), told(310, 9.0), told(150, 10.0)],
        "ours, JSON": [told(600, 4.5), told(310, 9.0), told(300, 5.0, equal=False)],
    }
    figures = flink.summary(found)
    assert figures[flink.BASE] | {"turns": []} == {
        "turns": [], "records_per_second": 300, "records_per_second_ratio": 1.0, "cpu_us_per_record": 9.0,
        "cpu_us_per_record_ratio": 1.0, "equal": True,
    }  # fmt: skip
    ours = figures["ours, JSON"]
    assert (ours["records_per_second"], ours["records_per_second_ratio"], ours["equal"]) == (310, 2.0, False)
    assert (ours["cpu_us_per_record_ratio"], ours["bar"]) == (0.5, 1.5)


def test_a_machine_is_told_with_its_versions() -> None:
    told = flink.machine()
    assert flink_environment.VERSION in told["versions"] and "GiB" in told["memory"]


COPIES = """
import sys, time
from confluent_kafka import Consumer, Producer
servers, source, target, most = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": servers, "group.id": source, "auto.offset.reset": "earliest"})
consumer.subscribe([source])
producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
written = 0
while written < int(most):
    for message in consumer.consume(1000, 0.1):
        until = time.process_time() + 0.001
        while time.process_time() < until:
            pass
        producer.produce(target, message.value())
        written += 1
    producer.flush()
"""
"""A program whose result is each message that it reads, after a millisecond of CPU time."""
TICKS = 2 / os.sysconf("SC_CLK_TCK")
"""The system tells CPU time in whole ticks, one number for the program and one for the kernel's work for it."""


def _copied(endpoints: Endpoints, folder: Path, most: int, expected: int) -> Results:
    """What comes of 200 samples that warm up and the 400 that end each load, which count."""
    name = f"peer-{time.time_ns()}"
    topics = {f"{name}.samples": {}, f"{name}.results": {"message.timestamp.type": "LogAppendTime"}}
    ensure_topics(endpoints.bootstrap, topics, 2)
    program = Program([sys.executable, "-c", COPIES, endpoints.bootstrap, *topics, str(most)])
    feed = Feed(endpoints.bootstrap, f"{name}.samples", 2, "avro", LOAD, 200)
    return runs.run(program, endpoints.bootstrap, feed, f"{name}.results", (200, expected), folder, 120)


@pytest.mark.servers
def test_a_program_gets_what_counts_when_it_is_warm_and_runs_until_all_results_are_there(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    results = _copied(endpoints, tmp_path / "run", most=10**9, expected=600)
    assert sorted(results.messages) == sorted(each for chunk in LOAD.chunks() for each in avro(chunk))
    assert 0.4 - TICKS <= results.cpu_seconds < 60, "a millisecond for each of the 400, and no second of the start"
    assert results.seconds >= 0.4


@pytest.mark.servers
def test_a_program_that_ends_before_its_results_are_there_is_an_error_that_names_its_log(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError, match=rf"of 900 results, and it ended with 0; see {tmp_path}"):
        _copied(endpoints, tmp_path / "run", most=600, expected=900)


@pytest.mark.servers
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_flink_and_ours_write_what_numpy_computes(endpoints: Endpoints, tmp_path: Path) -> None:
    if not flink_environment.installed():
        pytest.skip("Flink is not installed here; `make bench-flink` does so (800 MB, some minutes, once)")
    figures = flink.run(400_000, 1_000, 1, 50_000, endpoints.bootstrap, tmp_path)
    assert {name: told["equal"] for name, told in figures["ways"].items()} == dict.fromkeys(figures["ways"], True)
    assert all(told["turns"][0]["outputs"]["rows"] == 1_000 * flink.WINDOWS for told in figures["ways"].values())
