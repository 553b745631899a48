"""The agent also sends what a page of Prometheus metrics says, here one that prometheus-client serves."""

from __future__ import annotations

import socket
import time

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from datagen.agent import Agent
from datagen.jsonlines import to_json
from datagen.pages import Pages
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Telemetry
from tests.endless_answers import endless

NOW = 1_800_000_000_000


def _program() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("newnormal_records", "read", ["job"], registry=registry).labels("sink").inc(42)
    Gauge("newnormal_lag", "behind", registry=registry).set(7)
    Gauge("newnormal_unknown", "not known yet", registry=registry).set(float("nan"))
    Histogram("batch_seconds", "duration", buckets=(1.0,), registry=registry).observe(0.5)
    return registry


def test_what_a_page_says_is_sent_with_the_metrics_of_the_machine_until_it_is_gone_and_again_when_it_is_back() -> None:
    server, _ = start_http_server(0, "127.0.0.1", _program())
    port, said = server.server_port, list[str]()
    agent = Agent("me", Pages([f"http://127.0.0.1:{port}/metrics"], said.append))
    records = [Telemetry.from_json(line) for line in to_json(agent.sample(NOW), Telemetry)]
    found = {record.metric: (record.value, record.kind) for record in records if f"port={port}" in record.metric}
    assert found == {
        f"newnormal_records_total{{job=sink,port={port}}}": (42.0, "counter"),
        f"newnormal_lag{{port={port}}}": (7.0, "gauge"),
        f"batch_seconds_bucket{{le=1.0,port={port}}}": (1.0, "counter"),
        f"batch_seconds_bucket{{le=+Inf,port={port}}}": (1.0, "counter"),
        f"batch_seconds_count{{port={port}}}": (1.0, "counter"),
        f"batch_seconds_sum{{port={port}}}": (0.5, "counter"),
    }
    assert len(records) > len(found) + 20
    server.shutdown()
    server.server_close()
    for _ in range(2):
        gone = agent.sample(NOW + 1_000)
        assert gone.height >= 20 and not any(f"port={port}" in name for name in gone["metric"])
    assert len(said) == 1 and "cannot be read" in said[0]
    server, _ = start_http_server(port, "127.0.0.1", _program())
    assert any(f"port={port}" in name for name in agent.sample(NOW + 2_000)["metric"])
    assert len(said) == 2 and "is read again" in said[1]
    server.shutdown()
    server.server_close()


def test_a_page_that_is_none_is_left_out_and_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        said = list[str]()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/metrics"
        assert Agent("me", Pages([address], said.append)).sample(NOW).height >= 20
        assert len(said) == 1 and address in said[0]


@pytest.mark.parametrize("wrong", ["", "127.0.0.1:8880", "ftp://a/metrics", "http://"])
def test_what_is_no_address_is_refused(wrong: str) -> None:
    with pytest.raises(NewnormalError) as error:
        Pages([wrong], print)
    assert error.value.code == "SETTING_INVALID"


@pytest.mark.parametrize(("part", "pause"), [(b"level 1\n" * 100_000, 0.0), (b"level 1\n", 0.05)], ids=["fast", "slow"])
def test_a_page_without_an_end_is_left_out_after_a_bound_of_bytes_and_of_time(part: bytes, pause: float) -> None:
    said = list[str]()
    with endless(part, pause) as url:
        began = time.monotonic()
        assert Pages([f"{url}/metrics"], said.append).samples() == []
    assert time.monotonic() - began < 10 and "it has" in said[0]
