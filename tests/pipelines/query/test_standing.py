"""A windowed query as a standing job: its results worked out by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from engine.spec.errors import NewnormalError
from engine.testing import RESTART, TestStream, run
from pipelines.contracts.settings import Settings
from pipelines.query.standing import standing

T0 = 1_700_000_000_000


def sample(second: float, host: str, value: float, metric: str = "cpu") -> dict[str, Any]:
    at = T0 + round(second * 1000)
    return {"time": at, "entity": host, "metric": metric, "value": value, "kind": "gauge"}


def rows_of(query: str, settings: Settings, *samples: dict[str, Any]) -> list[dict[str, Any]]:
    """What the job writes of some samples, restarted in the middle; an hour has gone by at the end."""
    job = standing(query, "results", settings)
    half = len(samples) // 2
    stream = TestStream(T0, topics=("telemetry",), partitions=settings.kafka.partitions)
    stream = stream.advance_clock("10m").add(*samples[:half], RESTART, *samples[half:]).advance_watermark("1h")
    return run(job, stream, on="operator").rows


def test_a_tumbling_query_gives_each_window_of_each_group(settings: Settings) -> None:
    query = """SELECT entity, window_end AS ended, avg(value) AS mean, max(value) - min(value) AS spread, count(*) AS n
               FROM tumble(telemetry, time, '10s') WHERE metric = 'cpu' GROUP BY entity, window_start, window_end"""
    rows = rows_of(
        query,
        settings,
        *(sample(1, "a", 1.0), sample(9.999, "a", 4.0), sample(10, "a", 7.0), sample(2, "b", 5.0)),
        sample(3, "a", 100.0, "memory"),
    )
    assert sorted(tuple(row.values()) for row in rows) == [
        ("a", T0 + 10_000, 2.5, 3.0, 2),
        ("a", T0 + 20_000, 7.0, 0.0, 1),
        ("b", T0 + 10_000, 5.0, 0.0, 1),
    ]


def test_a_session_query_ends_a_session_after_its_gap(settings: Settings) -> None:
    query = """SELECT entity, window_start, count(*) AS n, sum(value * 2) AS twice
               FROM session(telemetry, time, '30s') GROUP BY entity, window_start HAVING count(*) > 1"""
    rows = rows_of(query, settings, *(sample(at, "a", float(at)) for at in (0, 20, 49, 79, 200)))
    assert [(row["window_start"], row["n"], row["twice"]) for row in rows] == [(T0, 3, 138.0)]


def test_a_hopping_query_counts_a_record_in_each_of_its_windows(settings: Settings) -> None:
    query = """SELECT entity, window_start, count(distinct metric) AS metrics
               FROM hop(telemetry, time, '10s', '20s') GROUP BY entity, window_start"""
    rows = rows_of(query, settings, sample(12, "a", 1.0), sample(13, "a", 1.0, "memory"), sample(25, "a", 1.0))
    assert sorted((row["window_start"] - T0, row["metrics"]) for row in rows) == [(0, 2), (10_000, 2), (20_000, 1)]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT FROM WHERE", "SQL_STANDING"),
        ("SELECT entity, count(*) FROM telemetry GROUP BY entity", "SQL_STANDING"),
        ("SELECT count(*) AS n FROM tumble(telemetry, time, '10s')", "SQL_STANDING"),
        ("SELECT entity, value FROM tumble(telemetry, time, '10s') GROUP BY entity, value", "SQL_STANDING"),
        ("SELECT count(*) AS n FROM tumble(telemetry, time, '10s') GROUP BY entity", "SQL_STANDING"),
        ("SELECT entity, median(value) FROM tumble(telemetry, time, '10s') GROUP BY entity", "SQL_STANDING"),
        ("SELECT entity, count(*) FROM tumble(telemetry, time, '10s') GROUP BY entity ORDER BY 2", "SQL_STANDING"),
        ("SELECT entity, count(*) FROM tumble(telemetry, time, 'long') GROUP BY entity", "DURATION_INVALID"),
        ("SELECT entity, avg(vlaue) FROM tumble(telemetry, time, '10s') GROUP BY entity", "COLUMN_UNKNOWN"),
        ("SELECT a, count(*) FROM tumble(mine, time, '10s') GROUP BY a", "SQL_LIVE_TOPIC"),
    ],
)
def test_a_query_that_cannot_stand_is_refused_with_what_is_accepted(query: str, code: str, settings: Settings) -> None:
    with pytest.raises(NewnormalError) as refused:
        standing(query, "results", settings)
    assert refused.value.code == code, refused.value
    assert refused.value.accepted
