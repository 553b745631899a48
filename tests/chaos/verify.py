"""The independent verifier: what the topics and the index must hold, computed from the feed's formula alone."""

from __future__ import annotations

import json
from collections import Counter
from statistics import fmean
from typing import Any

from engine.formats import columnar
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from tests.chaos.feed import HOSTS, METRICS, STEP, WINDOW, value
from tests.integration.conftest import Pipeline

Place = tuple[str, str, int]


def expected(begin: int, end: int) -> dict[Place, tuple[int, float, float]]:
    """Count, mean and maximum of each window of each series."""
    found = {}
    for start in range(begin, end, WINDOW):
        for host in range(HOSTS):
            for metric in range(METRICS):
                values = [value(host, metric, at) for at in range(start, start + WINDOW, STEP)]
                found[f"h{host}", f"m{metric}", start] = (len(values), round(fmean(values), 9), max(values))
    return found


def windows(pipeline: Pipeline) -> list[dict[str, Any]]:
    """All rows of the features topic."""
    schema = Features.arrow_schema()
    return [
        row
        for message in pipeline.read(topics.FEATURES)
        for row in columnar.decode(message.value(), schema)[0].to_pylist()
    ]


def verify(pipeline: Pipeline, begin: int, end: int) -> dict[str, int]:
    """Compares; returns what was counted.

    Raises:
        AssertionError: Something is lost, doubled or different.
    """
    want = expected(begin, end)
    rows = [row for row in windows(pipeline) if row["window_start"] < end]
    written = Counter((row["entity"], row["metric"], row["window_start"], row["revision"]) for row in rows)
    doubled = [key for key, count in written.items() if count > 1]
    assert not doubled, f"{len(doubled)} windows were written twice, e.g. {doubled[:3]}"
    last: dict[Place, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["revision"]):
        last[row["entity"], row["metric"], row["window_start"]] = row
    got = {place: (row["count"], round(row["mean"], 9), row["max"]) for place, row in last.items()}
    assert got.keys() == want.keys(), f"lost: {sorted(want.keys() - got.keys())[:5]}"
    different = {place: (got[place], want[place]) for place in want if got[place] != want[place]}
    assert not different, f"{len(different)} windows differ, e.g. {list(different.items())[:3]}"

    verdicts = [json.loads(message.value()) for message in pipeline.read(topics.NOVELTIES)]
    single = [verdict for verdict in verdicts if verdict["metric"] != "_machine" and verdict["window_start"] < end]
    told = Counter((v["host.name"], v["metric"], v["window_start"], v["revision"]) for v in single)
    assert all(count == 1 for count in told.values()), "a verdict was written twice"
    assert {key[:3] for key in told} == want.keys(), "a window has no verdict"

    stored = [d for d in pipeline.documents() if d["metric"] != "_machine" and d["window_start"] < end]
    held = Counter((d["host.name"], d["metric"], d["window_start"]) for d in stored)
    assert held.keys() == want.keys(), f"{len(want.keys() - held.keys())} documents are missing"
    assert all(count == 1 for count in held.values()), "a verdict was stored twice"
    newest = {(v["host.name"], v["metric"], v["window_start"]): v for v in sorted(single, key=lambda v: v["revision"])}
    for document in stored:
        verdict = newest[document["host.name"], document["metric"], document["window_start"]]
        assert (document["record_score"], document["kind"]) == (verdict["record_score"], verdict["kind"])
    assert not pipeline.read(topics.DEADLETTER), "a good record became a dead letter"
    assert not pipeline.read(topics.FEATURES_LATE), "a record was called late"
    return {"windows": len(want), "feature_rows": len(rows), "verdicts": len(verdicts), "documents": len(stored)}
