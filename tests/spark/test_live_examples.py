"""The demonstrations on real Kafka through Spark, by `engine.run` in a session that somebody else made."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deploy.embedded.endpoints import Endpoints
from engine.examples import kit, network, sine
from engine.examples.live import Live

pytestmark = [pytest.mark.servers, pytest.mark.spark]
LONG = [pytest.param(name, marks=[pytest.mark.slow, pytest.mark.long]) for name in ("timetravel", "stocks")]


@pytest.mark.parametrize("name", ["cards", *LONG])
def test_an_example_gives_the_same_on_kafka_through_spark(
    name: str, spark: SparkSession, endpoints: Endpoints, tmp_path: Path
) -> None:
    found: list[kit.Results] = []

    def kept(run: kit.Runner) -> kit.Runner:
        def running(plays: kit.Plays) -> kit.Results:
            found.append(run(plays))
            return found[-1]

        return running

    module = importlib.import_module(f"engine.examples.{name}")
    module.compute(kept(kit.here))
    module.compute(kept(Live(endpoints.bootstrap, tmp_path)))
    here, live = found
    assert here.keys() == live.keys()
    for play, rows in here.items():
        assert _last(live[play]) == _last(rows), play
        assert rows, play


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_sine_wave_sums_to_zero_in_event_time_though_it_comes_at_different_speeds(
    spark: SparkSession, endpoints: Endpoints, tmp_path: Path
) -> None:
    """It is sent at the pace at which it comes: a third, three times and once its own."""
    waves = sine.compute(Live(endpoints.bootstrap, tmp_path))
    periods = {row["window_start"]: (row["count"], round(row["total"], 9)) for row in waves.event_time}
    each = sine.PERIOD // sine.STEP
    assert periods == {kit.T0 + number * sine.PERIOD: (each, 0.0) for number in range(6)}
    assert sum(row["count"] for row in waves.processing_time) == len(waves.came) == 6 * each
    assert all(row["window_end"] - row["window_start"] == sine.PERIOD for row in waves.processing_time)
    assert max(abs(row["total"]) for row in waves.processing_time) > 10


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(400)
def test_each_burst_of_traffic_is_one_session_that_is_told_early_while_it_goes_on(
    spark: SparkSession, endpoints: Endpoints, tmp_path: Path
) -> None:
    found = network.compute(Live(endpoints.bootstrap, tmp_path))
    final = [row for row in found.panes if row["timing"] == "on_time"]
    told = sorted((row["host"], row["window_start"], row["window_end"], row["samples"]) for row in final)
    assert told == sorted(
        (host, kit.T0 + start * 1000, kit.T0 + end * 1000 - 500 + 10_000, 2 * (end - start))
        for host, bursts in network.BURSTS.items()
        for start, end in bursts
    ), "two samples a second; a session ends 10 s after its last one"
    for row in final:
        mine = [s["sent"] for _, _, s in found.samples if s["host"] == row["host"] and _inside(s["time"], row)]
        assert row["sent"] == pytest.approx(sum(mine))
        assert row["peak"] == max(mine)
        panes = [r for r in found.panes if r["host"] == row["host"] and _inside(r["window_start"], row)]
        sums = [r["sent"] for r in sorted(panes, key=lambda r: r["pane"])]
        assert sums == sorted(sums)
    assert sum(row["timing"] == "early" for row in found.panes) > len(final)


def _inside(time: int, row: dict[str, Any]) -> bool:
    return bool(row["window_start"] <= time < row["window_end"])


def _last(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The last revision of each result by what names it, rounded: sums are added in another order."""
    final: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row.get("revision") or 0):
        name = tuple(
            row.get(column) for column in ("symbol", "card", "host", "city_to", "time", "window_start", "window_end")
        )
        final[name] = {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items() if k != "revision"}
    return final
