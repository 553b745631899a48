"""The bounds of the values of records."""

from __future__ import annotations

import json

import pytest

from pipelines.contracts.records import Novelty
from pipelines.jobs.sink.identity import UnusableError, parse

GOOD = {
    "host.name": "a", "metric": "cpu", "window_start": 0, "@timestamp": 10_000, "kind": "anomaly", "record_score": 80.0,
    "probability": 0.01, "revision": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "good", "bad"), [("record_score", [0, 100], [-0.01, 100.01]), ("probability", [0, 1], [-1e-9, 1.000001])]
)
def test_a_score_is_from_0_to_100_and_a_chance_from_0_to_1(name: str, good: list[float], bad: list[float]) -> None:
    for value in good:
        record, _ = parse(json.dumps(GOOD | {name: value}).encode(), Novelty)
        assert getattr(record, name) == value
    for value in bad:
        with pytest.raises(UnusableError):
            parse(json.dumps(GOOD | {name: value}).encode(), Novelty)
