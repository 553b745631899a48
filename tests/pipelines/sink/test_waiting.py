"""A sink whose server is down, answers no more or is full waits, and doubles nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from engine.spec.errors import NewnormalError
from pipelines.jobs.sink import Sink, SinkConfig, SinkOutcome, SinkStoppedError, backoff
from pipelines.jobs.sink.bulk import Limits
from pipelines.jobs.sink.partition import Partition
from tests.pipelines.sink.conftest import NOW, QUICK, Forwarder, novelty, servers, stored


def in_background(work: Callable[[], SinkOutcome]) -> tuple[threading.Thread, list[Any]]:
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except NewnormalError as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, result


@servers
@pytest.mark.parametrize("opened", [True, False], ids=["after it was used", "before its first use"])
def test_a_server_that_is_down_is_waited_for(
    opened: bool, client: Elasticsearch, config: SinkConfig, forwarder: Forwarder
) -> None:
    sink = Sink(replace(config, url=forwarder.url))
    if opened:
        sink.write([novelty("before")])
    forwarder.down()
    thread, result = in_background(lambda: sink.write([novelty(f"during-{i}") for i in range(30)]))
    thread.join(0.7)
    assert thread.is_alive()
    assert not any("during" in name for name in stored(client, config))
    forwarder.up()
    thread.join(30)
    assert result[0].indexed == 30
    assert len(stored(client, config)) == 30 + opened


@servers
def test_answers_that_are_lost_double_nothing(client: Elasticsearch, config: SinkConfig, forwarder: Forwarder) -> None:
    sink = Sink(replace(config, url=forwarder.url, limits=Limits(documents=10)))
    sink.open()
    forwarder.swallow = 3
    assert sink.write([novelty(f"{i}", i % 3) for i in range(100)]).indexed == 100
    assert forwarder.swallow == 0
    assert len(stored(client, config)) == 100


@servers
def test_a_server_that_comes_back_empty_gets_its_template_again(
    client: Elasticsearch, config: SinkConfig, forwarder: Forwarder
) -> None:
    sink = Sink(replace(config, url=forwarder.url))
    sink.write([novelty("a")])
    forwarder.down()
    client.indices.delete(index=",".join(client.indices.get_alias(name=config.alias or "")))
    client.indices.delete_index_template(name=f"newnormal-{config.index}")
    thread, result = in_background(lambda: sink.write([novelty("b")]))
    thread.join(0.3)
    forwarder.up()
    thread.join(30)
    assert result[0].indexed == 1
    assert len(stored(client, config)) == 1  # through the alias: the new index is in it


@servers
def test_a_full_disk_is_waited_out_without_rejecting_anything(client: Elasticsearch, config: SinkConfig) -> None:
    sink = Sink(config)
    sink.write([novelty("a")])
    block = {"index.blocks.read_only_allow_delete": True}  # what Elasticsearch itself sets when the disk is full
    client.indices.put_settings(index=config.alias, settings=block)
    thread, result = in_background(lambda: sink.write([novelty("b"), novelty("old", at=1_400_000_000_000)]))
    thread.join(0.5)
    assert thread.is_alive()
    client.indices.put_settings(index=config.alias, settings={"index.blocks.read_only_allow_delete": None})
    thread.join(30)
    assert (result[0].indexed, result[0].rejected) == (2, ())


def test_told_to_stop_it_stops_waiting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    stop = threading.Event()
    sink = Sink(SinkConfig(f"http://127.0.0.1:{port}", backoff=QUICK), stop=stop)
    thread, result = in_background(lambda: sink.write([novelty("a")]))
    thread.join(0.3)
    assert thread.is_alive()
    assert sink.problem() is None, "a pause of a moment is no problem"
    stop.set()
    thread.join(5)
    assert isinstance(result[0], SinkStoppedError)


def test_told_to_stop_it_makes_no_request_that_was_not_under_way(config_of_a_silent_server: SinkConfig) -> None:
    """A server that takes connections and never answers: each request takes its whole time."""
    stop = threading.Event()
    sink = Sink(
        replace(config_of_a_silent_server, timeout_s=0.5, limits=Limits(connections=4, documents=10)), stop=stop
    )
    sink._partition = Partition("novelties", 0)  # as if the server had fallen silent after the start
    thread, result = in_background(lambda: sink.write([novelty(f"{i}") for i in range(1_000)]))
    thread.join(0.3)
    stop.set()
    thread.join(3)  # a lane has some 25 requests to make
    assert not thread.is_alive()
    assert isinstance(result[0], SinkStoppedError)


def test_a_silent_server_does_not_keep_the_process_from_ending(config_of_a_silent_server: SinkConfig) -> None:
    """As after Ctrl-C: a request that is under way may take its whole time."""
    script = f"""
import threading, time
from pipelines.jobs.sink import Sink, SinkConfig
from pipelines.jobs.sink.partition import Partition
from tests.pipelines.sink.conftest import novelty

sink = Sink(SinkConfig({config_of_a_silent_server.url!r}, timeout_s=60.0))
sink._partition = Partition("novelties", 0)
threading.Thread(target=lambda: sink.write([novelty(str(i)) for i in range(20)]), daemon=True).start()
time.sleep(0.3)
sink.close()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


@pytest.fixture
def config_of_a_silent_server() -> Iterator[SinkConfig]:
    with socket.create_server(("127.0.0.1", 0), backlog=50) as silent:
        yield SinkConfig(f"http://127.0.0.1:{silent.getsockname()[1]}", backoff=QUICK)


def test_it_gives_up_when_asked_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    sink = Sink(SinkConfig(f"http://127.0.0.1:{port}", backoff=replace(QUICK, give_up_after_s=0.2)))
    with pytest.raises(NewnormalError, match="ELASTICSEARCH_UNREACHABLE"):
        sink.write([novelty("a")])


@servers
def test_a_red_index_is_waited_out_and_the_sink_says_why(
    client: Elasticsearch, config: SinkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its only shard may be on no node: Elasticsearch answers, but can store nothing."""
    monkeypatch.setattr(backoff, "_REPORTED_AFTER_S", 0.3)
    sink = Sink(replace(config, limits=Limits(shard_wait_ms=200)))
    index = sink.open().index(NOW)
    nowhere = {"index.routing.allocation.require._name": "nowhere"}
    client.indices.create(index=index or "", settings=nowhere, wait_for_active_shards=0)
    assert client.cluster.health(index=index, wait_for_status="red", timeout="10s")["status"] == "red"
    thread, result = in_background(lambda: sink.write([novelty(f"{i}") for i in range(20)]))
    assert "takes no documents for" in until_told(sink)
    assert thread.is_alive()
    client.indices.put_settings(index=index, settings={"index.routing.allocation.require._name": None})
    thread.join(60)
    assert (result[0].indexed, result[0].rejected) == (20, ())
    assert (len(stored(client, config)), sink.problem()) == (20, None)


@servers
def test_a_server_without_memory_for_requests_is_waited_out_and_the_sink_says_why(
    client: Elasticsearch, config: SinkConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A circuit breaker answers each larger request with 429, as does a full write queue."""
    monkeypatch.setattr(backoff, "_REPORTED_AFTER_S", 0.3)
    sink = Sink(config)
    sink.open()
    breaker = "network.breaker.inflight_requests.limit"
    client.cluster.put_settings(persistent={breaker: "8kb"})
    try:
        thread, result = in_background(lambda: sink.write([novelty(f"{i}", template="x" * 500) for i in range(100)]))
        assert "HTTP 429" in until_told(sink)
        assert thread.is_alive()
    finally:
        client.cluster.put_settings(persistent={breaker: None})
    thread.join(30)
    assert (result[0].indexed, result[0].rejected) == (100, ())
    assert (len(stored(client, config)), sink.problem()) == (100, None)


def until_told(sink: Sink) -> str:
    """The problem of a sink that waits, as soon as it tells one."""
    deadline = time.monotonic() + 20
    while (problem := sink.problem()) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return problem or "nothing"
