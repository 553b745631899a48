"""A sink whose server is down, answers no more or is full waits, and doubles nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from engine.spec.errors import NewnormalError
from pipelines.jobs.index import Sink, SinkConfig, SinkOutcome, SinkStoppedError
from pipelines.jobs.index.bulk import Limits
from tests.pipelines.index.conftest import QUICK, Forwarder, novelty, servers, stored


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
    stop.set()
    thread.join(5)
    assert isinstance(result[0], SinkStoppedError)


def test_it_gives_up_when_asked_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    sink = Sink(SinkConfig(f"http://127.0.0.1:{port}", backoff=replace(QUICK, give_up_after_s=0.2)))
    with pytest.raises(NewnormalError, match="ELASTICSEARCH_UNREACHABLE"):
        sink.write([novelty("a")])
