"""The detector as a job, through decoders, shards and clocks, without Spark: features, rules and labels together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from engine.columns.partitioning import crc32
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.intake import KAFKA
from engine.testing import Driven
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Label, Rule
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.job import detector

T0, STEP, PARTITIONS = 1_700_000_000_000, 10_000, 4
SAID = (topics.RULES, topics.LABELS, topics.CHANGES)
"""The topics that the detector reads beside windows."""

STATISTICS = ("mean", "std", "min", "max", "last", "p50", "p95", "p99")
Entry = tuple[str, int, bytes, int]


def at(window: int) -> int:
    return T0 + window * STEP


def features(windows: dict[int, dict[str, float]], watermark: int, revision: int = 0, count: int = 1) -> list[Entry]:
    """One message a partition, with the extractor's watermark."""
    rows: dict[int, list[dict[str, Any]]] = {p: [] for p in range(PARTITIONS)}
    for number, values in windows.items():
        place = {"window_start": at(number), "window_end": at(number + 1), "count": count, "revision": revision}
        for host, value in values.items():
            row = {"entity": host, "metric": "cpu", "kind": "gauge"} | place | dict.fromkeys(STATISTICS, value)
            rows[crc32(host) % PARTITIONS].append(row)
    schema = Features.arrow_schema()
    tables = {p: pa.Table.from_pylist(own, schema=schema) for p, own in rows.items()}
    return [(topics.FEATURES, p, columnar.encode(table, at(watermark)), at(watermark)) for p, table in tables.items()]


def heartbeats(arrived: int) -> list[Entry]:
    return [(t, p, HEARTBEAT, arrived) for t in SAID for p in range(PARTITIONS)]


@pytest.fixture
def take() -> tuple[Driven, Callable[[list[Entry]], None]]:
    driven, offsets = Driven(detector(load(**{"detector.emit": "all"})), 2), iter(range(10**6))

    def entries(some: list[Entry]) -> None:
        rows = [(value, topic, p, next(offsets), arrived) for topic, p, value, arrived in some]
        driven.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, r, strict=True)) for r in rows], schema=KAFKA)])

    return driven, entries


def test_rules_and_labels_reach_all_shards_and_count_from_their_event_time(
    take: tuple[Driven, Callable[[list[Entry]], None]],
) -> None:
    driven, entries = take
    rng = np.random.default_rng(0)
    hosts = [f"h{i}" for i in range(6)]
    values = {n: {host: float(rng.normal(50, 3)) for host in hosts} for n in range(120)}
    values[80] |= dict.fromkeys(hosts, 90.0)
    values[105] |= dict.fromkeys(hosts, 150.0)
    rule = Rule(id="quiet", time=at(100), end=at(110), entity="h[0]", skip_result=True)
    rules = [rule.model_copy(update={"id": f"quiet-{i}", "entity": f"h{i}"}) for i in range(2)]
    label = Label(entity="h2", metric="cpu", start=at(80), time=at(90), verdict="false_alarm")
    said = [(topics.RULES, 1, r.to_json(), at(100)) for r in (rule, *rules)]
    bad = [(topics.RULES, 2, b'{"id": "x"}', at(100)), (topics.LABELS, 0, b"{", at(100))]
    entries([*said, *bad, (topics.LABELS, 3, label.to_json(), at(90)), *heartbeats(at(100))])
    for start in range(0, 120, 30):
        some = {n: values[n] for n in range(start, start + 30)}
        entries([*features(some, start + 30), *heartbeats(at(start + 30))])
    assert sorted(letter["error.code"] for letter in driven.dead) == ["JSON_MALFORMED", "RULE_INVALID"]

    found = {(row["host.name"], (row["window_start"] - T0) // STEP): row for row in driven.rows}
    assert len(found) == len(driven.rows) == 6 * 120
    assert {found[host, 80]["kind"] for host in hosts} == {"anomaly"}
    assert [found[host, 105]["kind"] for host in hosts] == ["normal"] * 3 + ["anomaly"] * 3, (
        "two by rules, one by a label"
    )
    assert [found[host, 105].get("rules") for host in hosts[:3]] == [["quiet-0"], ["quiet-1"], None]
    assert 0 < found["h2", 105]["record_score"] < min(found[host, 105]["record_score"] for host in hosts[3:])
    before = len(driven.rows)
    entries(features({115: {"h3": 500.0}}, 120, revision=1))
    amended = pl.DataFrame([{k: row[k] for k in ("host.name", "revision", "kind")} for row in driven.rows[before:]])
    assert amended["host.name"].unique().to_list() == ["h3"]
    assert amended.row(0) == ("h3", 4 * STEP, "anomaly"), "so long after the end of the window it is amended"
    assert amended["revision"].min() == 1
    entries(features({3: {"h3": 500.0}}, 120, revision=1))
    assert [row["window_start"] for row in driven.late] == [at(3)]


def test_the_watermark_waits_for_the_rules_as_far_as_they_have_been_heard(
    take: tuple[Driven, Callable[[list[Entry]], None]],
) -> None:
    driven, entries = take
    entries(features({0: {"h0": 1.0, "h1": 1.0, "h2": 1.0, "h3": 1.0}}, 20))
    assert not driven.rows
    entries(heartbeats(at(1) - 1))
    assert not driven.rows
    entries(heartbeats(at(1)))
    assert len(driven.rows) == 4, "windows that ended by the last heartbeat"


def test_after_a_restore_the_last_verdict_is_what_an_uninterrupted_run_says_last() -> None:
    """A window gets three late samples, then the job is restored from before, reads all of them at once, and one more.

    The features are those of an extractor that was restored too: it counts its revisions anew.
    """
    rng = np.random.default_rng(0)
    values = {n: {f"h{i}": float(rng.normal(50, 3)) for i in range(4)} for n in range(60)}
    late = {1: 51.0, 2: 52.0, 3: 53.0, 4: 300.0}  # by the number of late samples

    def amended(count: int, revision: int, watermark: int) -> list[Entry]:
        return features({55: {"h1": late[count]}}, watermark, revision, count=1 + count)

    def run() -> tuple[Driven, Callable[[list[Entry]], None]]:
        driven = Driven(detector(load(**{"detector.emit": "all"})), 2)
        offsets = iter(range(10**6))

        def entries(some: list[Entry]) -> None:
            rows = [(value, topic, p, next(offsets), arrived) for topic, p, value, arrived in some]
            driven.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, r, strict=True)) for r in rows], schema=KAFKA)])

        return driven, entries

    once, entries = run()
    entries([*features(values, 60), *heartbeats(at(60))])
    savepoint = copy.deepcopy(once.states)
    for n in (1, 2, 3):
        entries([*amended(n, n, 60 + n), *heartbeats(at(60 + n))])
    topic = list(once.rows)
    entries([*amended(4, 4, 64), *heartbeats(at(64))])

    restored, entries = run()
    restored.states = savepoint
    first_life = [entry for n in (1, 2, 3) for entry in amended(n, n, 60 + n)]
    entries([*first_life, *amended(3, 1, 63), *heartbeats(at(63))])
    entries([*amended(4, 2, 64), *heartbeats(at(64))])

    def last(rows: list[dict[str, Any]]) -> dict[tuple[str, str, int], tuple[str, float | None]]:
        """What Elasticsearch has in the end: of two verdicts that with the higher revision, or the later one."""
        kept: dict[tuple[str, str, int], dict[str, Any]] = {}
        for row in rows:
            name = (row["host.name"], row["metric"], row["window_start"])
            if name not in kept or kept[name]["revision"] <= row["revision"]:
                kept[name] = row
        return {name: (row["kind"], row.get("actual")) for name, row in kept.items()}

    assert last([*topic, *restored.rows]) == last(once.rows)
    assert last(once.rows)["h1", "cpu", at(55)] == ("anomaly", 300.0)
