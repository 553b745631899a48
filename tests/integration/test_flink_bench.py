"""The benchmark beside Flink SQL: how it measures and compares; with Flink, where it is installed, that both agree."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deploy.embedded.endpoints import Endpoints
from engine.kafka.admin import ensure_topics
from tests.benchmarks import flink, outputs
from tests.benchmarks.load import Load
from tests.benchmarks.peers import flink_environment, runs, samples
from tests.benchmarks.peers.runs import Program, Results

FLINKS = (
    b'{"entity":"host-1","metric":"metric.2","window_start":"2026-11-29 10:00:00",'
    b'"window_end":"2026-11-29 10:00:10.000","count":3,"sum":6.0,"mean":2.0,"std":1.0,"min":1.0,"max":3.0}'
)
OURS = (
    b'{"entity":"host-1","metric":"metric.2","window_start":1795946400000,"window_end":1795946410000,'
    b'"count":3,"sum":6.0,"mean":2.0,"std":1.0,"min":1.0,"max":3.0}'
)


@pytest.mark.parametrize("together", [1, 4])
def test_a_rate_does_not_depend_on_whether_windows_come_one_by_one_or_several_in_a_micro_batch(together: int) -> None:
    """250 records a second, of which each costs 2 ms of CPU time, and before the first window nothing but the start."""
    begin, windows = 1_000.0, 40
    there = [begin + math.ceil((n + 1) / together) * together * 0.4 for n in range(windows)]
    frame = pl.DataFrame({"window_end": range(windows), "arrived": there, "count": [100] * windows})
    instants = np.arange(begin - 20, begin + 30, 0.2)
    clock = np.column_stack([instants, 7 + 0.5 * np.maximum(instants - begin, 0)])
    rate = runs.rate(frame, Results([], [], clock))
    assert rate.records_per_second == pytest.approx(250)
    assert rate.cpu_us_per_record == pytest.approx(2_000)


def test_a_load_that_ends_before_programs_are_warm_gives_no_rate() -> None:
    frame = pl.DataFrame({"window_end": range(4), "arrived": [1.0] * 4, "count": [100] * 4})
    with pytest.raises(RuntimeError, match="more records"):
        runs.rate(frame, Results([], [], np.array([[0.0, 0.0], [2.0, 1.0]])))


def test_results_of_both_programs_are_read_as_the_same_rows() -> None:
    rows = [flink.parsed(Results([message], [5.25], np.empty((0, 2)))) for message in (FLINKS, OURS)]
    assert rows[0].equals(rows[1])
    assert rows[0]["arrived"].to_list() == [5.25]


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


WRITES = """
import sys, time
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1]})
for number in range(int(sys.argv[3])):
    producer.produce(sys.argv[2], str(number))
producer.flush()
until = time.process_time() + 0.5
while time.process_time() < until:
    pass
time.sleep(float(sys.argv[4]))
"""


@pytest.mark.servers
def test_a_program_runs_until_all_its_results_are_there_and_its_cpu_time_is_known(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    topic = f"peer-{time.time_ns()}"
    ensure_topics(endpoints.bootstrap, {topic: {"message.timestamp.type": "LogAppendTime"}}, 2)
    program = Program([sys.executable, "-c", WRITES, endpoints.bootstrap, topic, "300", "1000"])
    before = time.time()
    results = runs.run(program, endpoints.bootstrap, topic, 300, tmp_path / "run", 120)
    assert sorted(map(int, results.messages)) == list(range(300))
    assert all(before - 1 < at < time.time() + 1 for at in results.arrived)
    assert 0 < results.clock[-1, 1] < 60 and (np.diff(results.clock[:, 1]) >= 0).all()


@pytest.mark.servers
def test_a_program_that_ends_before_its_results_are_there_is_an_error_that_names_its_log(
    endpoints: Endpoints, tmp_path: Path
) -> None:
    topic = f"peer-{time.time_ns()}"
    ensure_topics(endpoints.bootstrap, {topic: {}}, 2)
    program = Program([sys.executable, "-c", WRITES, endpoints.bootstrap, topic, "3", "0"])
    with pytest.raises(RuntimeError, match=f"of 300 results, and it ended with 0; see {tmp_path}"):
        runs.run(program, endpoints.bootstrap, topic, 300, tmp_path / "run", 120)


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
