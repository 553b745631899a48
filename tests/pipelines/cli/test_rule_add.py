"""`newnormal rule add` on a real Kafka: what it says of the series that send, and what it refuses."""

from __future__ import annotations

import time
import uuid

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from deploy.embedded.endpoints import Endpoints
from engine.formats import columnar
from engine.kafka.admin import ensure_topics
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from pipelines.contracts.settings import Settings, load
from pipelines.query import control_topics
from tests.pipelines.cli.conftest import Run

pytestmark = pytest.mark.servers

WINDOWS = 12


@pytest.fixture
def site(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A namespace in which a machine has sent a disk in bytes, the same as a ratio, and a counter; no view runs."""
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", endpoints.bootstrap)
    monkeypatch.setenv("NEWNORMAL_ELASTICSEARCH__URL", endpoints.elasticsearch_url)
    monkeypatch.setenv("NEWNORMAL_NAMESPACE", f"add{uuid.uuid4().hex[:8]}.")
    settings, now = load(), int(time.time() * 1000)
    topic = settings.topic(topics.FEATURES)
    ensure_topics(endpoints.bootstrap, {topic: topics.config(topics.FEATURES)}, 2, 1)
    producer = Producer({"bootstrap.servers": endpoints.bootstrap})
    for n in range(WINDOWS):
        rows = [
            _row("disk.used{path=/}", "gauge", n, now, mean=22.25e9),
            _row("disk.used_ratio{path=/}", "ratio", n, now, mean=0.2 + n / 1000),
            _row("net.bytes", "counter", n, now, mean=5e12, rate=1e6 if n else None),
        ]
        message = columnar.encode(pa.Table.from_pylist(rows, schema=Features.arrow_schema()), now)
        producer.produce(topic, message, partition=n % 2)
    assert producer.flush(30) == 0
    return settings


def _row(metric: str, kind: str, n: int, now: int, mean: float, rate: float | None = None) -> dict[str, object]:
    end = now - (WINDOWS - n) * 10_000
    same = dict.fromkeys(("std", "min", "max", "last", "p50", "p95", "p99"), mean)
    row = {"entity": "vm", "metric": metric, "kind": kind, "window_start": end - 10_000, "window_end": end, "count": 10}
    return row | same | {"mean": mean, "rate": rate, "revision": 0}


def test_it_says_what_the_rule_does_now_to_the_series_that_send(site: Settings, run: Run) -> None:
    code, out, err = run("rule", "add", "full", "--metric", "disk.used_ratio*", "--above", "95%", "--report")
    assert (code, err) == (0, "")
    assert "values above 0.95" in out and "1 series matches, of vm" in out
    assert "1 never above 0.95: at most 0.211 (21.1 %)" in out
    assert [rule.above for rule in control_topics.rules(site)] == [0.95]
    code, out, err = run("rule", "add", "wrong", "--metric", "disk.used*", "--above", "95", "--report")
    assert code == 0 and "2 series match" in out
    assert "1 always above 95: 22.25 GB" in out and "1 never above 95" in out
    assert err.startswith("warning: it reports every window of the one series")


def test_a_percentage_of_bytes_is_refused_before_anything_is_written(site: Settings, run: Run) -> None:
    code, out, err = run("rule", "add", "full", "--metric", "disk.used*", "--above", "95%", "--report")
    assert code != 0 and out == ""
    assert "RULE_INVALID" in err and "disk.used{path=/} of vm is no ratio" in " ".join(err.split())
    assert control_topics.rules(site) == []


def test_a_counter_is_compared_by_its_increase(site: Settings, run: Run) -> None:
    """Its first window has none, and is not judged."""
    _, out, _ = run("rule", "add", "busy", "--metric", "net.*", "--above", "20M", "--report")
    assert "1 never above 20 M: at most 1 MB/s" in out


def test_a_metric_that_nothing_sends_is_taken_with_the_names_of_similar_ones(site: Settings, run: Run) -> None:
    code, out, err = run("rule", "add", "full", "--metric", "disk.used_percent", "--above", "95", "--report")
    assert code == 0
    assert "no series that sends matches" in out and "disk.used_ratio{path=/}" in out
    assert err.startswith("warning: ")
