"""The demonstrations on real Kafka through Spark, by `engine.run` in a session that somebody else made."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from deploy.embedded.endpoints import Endpoints
from engine.examples import kit
from engine.examples.live import Live

pytestmark = [pytest.mark.servers, pytest.mark.spark]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("timetravel", "stocks")]


@pytest.mark.parametrize("name", ["cards", *SLOW])
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


def _last(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The last revision of each result by what names it, rounded: sums are added in another order."""
    final: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row.get("revision") or 0):
        name = tuple(
            row.get(column) for column in ("symbol", "card", "host", "city_to", "time", "window_start", "window_end")
        )
        final[name] = {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items() if k != "revision"}
    return final
