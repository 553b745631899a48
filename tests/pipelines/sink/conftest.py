"""A sink of one's own on the real Elasticsearch, and a forwarder before it that can be taken down."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from elasticsearch import Elasticsearch, NotFoundError

from pipelines.jobs.sink import SinkConfig, SinkDocument
from pipelines.jobs.sink.backoff import Backoff

NOW = int(time.time() * 1000)
QUICK = Backoff(first_s=0.02, most_s=0.2)
servers = pytest.mark.servers


def novelty(entity: str, revision: int = 0, at: int = NOW, **fields: Any) -> SinkDocument:
    tree = {
        "host.name": entity, "metric": "cpu.user", "window_start": at - 10_000, "@timestamp": at, "kind": "anomaly",
        "record_score": 80.0, "probability": 0.01, "actual": 1.0, "revision": revision, **fields,
    }  # fmt: skip
    return SinkDocument(json.dumps(tree).encode(), origin=f"novelties/0@{entity}")


class Forwarder:
    """A real TCP forwarder to one port, which can be taken down and can swallow answers.

    Down, its port refuses connections and those that are open break. While ``swallow`` is positive, that many requests
    reach the server, but the connection breaks before the answer: the client cannot know that they were done.
    """

    def __init__(self, target: str) -> None:
        where = urlsplit(target)
        self._target, self._account = (where.hostname, where.port), where.netloc.rpartition("@")[0]
        self._open, self.swallow = set[socket.socket](), 0
        self._lock = threading.Lock()
        self._listener = self._bind(0)
        self.port = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://{self._account}@127.0.0.1:{self.port}"

    def down(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in list(self._open):
            self._break(each)

    def up(self) -> None:
        self._listener = self._bind(self.port)

    def _bind(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self._target)
                self._open |= {client, server}
                threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                with self._lock:
                    swallowed = answers and self.swallow > 0
                    self.swallow -= swallowed
                if swallowed:
                    break
                sink.sendall(data)
        self._break(source)
        self._break(sink)

    def _break(self, one: socket.socket) -> None:
        self._open.discard(one)
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@pytest.fixture
def client(endpoints: Any) -> Iterator[Elasticsearch]:
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        yield client


@pytest.fixture
def config(endpoints: Any, client: Elasticsearch) -> Iterator[SinkConfig]:
    name = f"t{uuid.uuid4().hex[:12]}"
    yield SinkConfig(endpoints.elasticsearch_url, index=name, alias=name, refresh_ms=100, backoff=QUICK)
    for index in client.indices.get(index=f"{name}*", allow_no_indices=True):
        client.indices.delete(index=index)
    with contextlib.suppress(NotFoundError):
        client.indices.delete_index_template(name=f"newnormal-{name}*")


@pytest.fixture
def forwarder(endpoints: Any) -> Iterator[Forwarder]:
    forwarder = Forwarder(endpoints.elasticsearch_url)
    yield forwarder
    with contextlib.suppress(OSError):
        forwarder.down()


def stored(client: Elasticsearch, config: SinkConfig) -> dict[str, dict[str, Any]]:
    hits = client.search(index=config.alias, size=10_000, ignore_unavailable=True)["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}
