"""The detector gives the same final verdicts for the same log, whatever the micro-batches and the number of shards."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

from engine.formats import columnar
from engine.runtime.intake import KAFKA
from engine.testing import Driven
from pipelines.contracts import topics
from pipelines.contracts.records import Features, Label, Rule
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.job import detector
from tests.pipelines.detectors.test_operator import PARTITIONS, STATISTICS, Entry, at, heartbeats
from tests.pipelines.test_rescaling import said

STEPS, JOINS, HORIZON = 76, 58, 6
"""The horizon is one minute: a window and the allowed lateness."""

LAG = (0, 0, 1, 8)
"""How many windows the watermark of each partition lies behind: that of the last one holds back its shard."""

HOSTS = [f"h{number}" for number in range(16)]
FAST = [host for host in HOSTS if crc32(host.encode()) % PARTITIONS == 0]


@cache
def log() -> list[list[Entry]]:
    """For each step the messages of all partitions: windows, some of them late or too late, a rule and a label."""
    rng, made = np.random.default_rng(0), []
    for n in range(STEPS):
        rows = [row(host, n, float(rng.normal(50, 3))) for host in HOSTS]
        rows += [row(f"new{number}", n, float(rng.normal(50, 3))) for number in range(8 if n >= JOINS else 0)]
        if n in (40, 66):
            rows += [row(host, n - 3, 400.0, revision=1) for host in FAST]  # late
        if n in (45, 70):
            rows += [row(FAST[0], n - HORIZON - 1, 900.0, revision=1)]  # too late by a millisecond in its partition
        messages = [message(rows, p, n) for p in range(PARTITIONS)]
        if n == 30:
            rule = Rule(id="quiet", time=at(50), end=at(60), entity=HOSTS[3], skip_result=True)
            label = Label(entity=HOSTS[2], metric="cpu", start=at(35), time=at(38), verdict="false_alarm")
            messages += [(topics.RULES, 1, rule.to_json(), at(n)), (topics.LABELS, 3, label.to_json(), at(n))]
        made.append([*messages, *heartbeats(at(n + 1))])
    end = [(topics.FEATURES, p, columnar.encode(message_table([], p), at(STEPS)), at(STEPS)) for p in range(PARTITIONS)]
    return [*made, end]


def row(host: str, window: int, value: float, revision: int = 0) -> dict[str, Any]:
    place = {"window_start": at(window), "window_end": at(window + 1), "count": 1, "revision": revision}
    return {"entity": host, "metric": "cpu", "kind": "gauge"} | place | dict.fromkeys(STATISTICS, value)


def message_table(rows: list[dict[str, Any]], partition: int) -> pa.Table:
    own = [one for one in rows if crc32(one["entity"].encode()) % PARTITIONS == partition]
    return pa.Table.from_pylist(own, schema=Features.arrow_schema())


def message(rows: list[dict[str, Any]], partition: int, step: int) -> Entry:
    told = at(max(0, step + 1 - LAG[partition]))
    return topics.FEATURES, partition, columnar.encode(message_table(rows, partition), told), at(step + 1)


def run(shards: int, steps_a_batch: int) -> Driven:
    settings = load(**{"detector.emit": "all", "window.allowed_lateness": "50s"})
    driven, offsets = Driven(detector(settings), shards), count()
    steps = log()
    for start in range(0, len(steps), steps_a_batch):
        some = [entry for step in steps[start : start + steps_a_batch] for entry in step]
        rows = [(value, topic, p, next(offsets), arrived) for topic, p, value, arrived in some]
        driven.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, r, strict=True)) for r in rows], schema=KAFKA)])
    return driven


def final(driven: Driven) -> list[str]:
    """The last revision of each verdict; how many there were before is not compared."""
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for verdict in driven.rows:
        name = verdict["host.name"], verdict["metric"], verdict["window_start"]
        if name not in last or verdict["revision"] >= last[name]["revision"]:
            last[name] = verdict
    return said([{k: v for k, v in verdict.items() if k != "revision"} for verdict in last.values()])


@cache
def wanted() -> tuple[list[str], list[str]]:
    driven = run(1, 19)
    return final(driven), said(driven.late)


@pytest.mark.parametrize(("shards", "steps_a_batch"), [(1, STEPS + 1), (2, 7), (4, 38)])
def test_final_verdicts_and_late_windows_are_the_same(shards: int, steps_a_batch: int) -> None:
    driven = run(shards, steps_a_batch)
    verdicts, late = wanted()
    assert len(late) == 2, "the windows that were too late in their partition, and no others"
    assert said(driven.late) == late
    assert final(driven) == verdicts
