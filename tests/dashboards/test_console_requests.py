"""What the console answers, and what it refuses: names that are not its own, sizes without end, wrong questions."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

import httpx
import pytest
from elasticsearch import Elasticsearch
from fastapi.testclient import TestClient

from dashboards.console import Access, Store, create_app
from deploy.embedded.endpoints import Endpoints
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import load
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.serving.server import serve

NOW = int(time.time() * 1000)
NOBODY = Store("http://127.0.0.1:9")
SERIES = {"entity": "a", "metric": "cpu", "start": NOW - 3_600_000, "end": NOW}


def client(**given: object) -> TestClient:
    return TestClient(create_app(NOBODY, **given), base_url="http://127.0.0.1:8880")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["/", "/page/console.js", "/metrics", "/health", "/api/status", "/api/novelties"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8880", "127.0.0.1.evil.example", "", "a@localhost", "[::"]
)
def test_a_name_that_is_not_its_own_gets_nothing(path: str, host: str) -> None:
    reply = client().get(path, headers={"host": host})
    assert (reply.status_code, reply.json()["code"]) == (400, "HOST_REFUSED")
    assert "console.hosts" in reply.json()["detail"]


@pytest.mark.parametrize("host", ["localhost", "LocalHost:8880", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8880"])
def test_this_machine_is_answered_by_each_of_its_names(host: str) -> None:
    assert client().get("/api/status", headers={"host": host}).status_code == 200


def test_further_names_are_a_setting() -> None:
    given = {
        "access": Access("127.0.0.1"),
        "listening": "192.0.2.7",
        "hosts": load(**{"console.hosts": "Watch.example,box"}).console.hosts.split(","),
    }
    answers = {
        host: client(**given).get("/api/status", headers={"host": host}).status_code
        for host in ("watch.example", "box:8880", "192.0.2.7", "192.0.2.8", "other.example")
    }
    assert answers == {"watch.example": 200, "box:8880": 200, "192.0.2.7": 200, "192.0.2.8": 400, "other.example": 400}
    assert client(hosts=["*"]).get("/api/status", headers={"host": "any.example"}).status_code == 200


def test_listening_everywhere_it_answers_to_addresses_and_still_not_to_names() -> None:
    everywhere = client(listening="0.0.0.0", access=Access("127.0.0.1"))
    assert everywhere.get("/api/status", headers={"host": "192.0.2.7:8880"}).status_code == 200
    assert everywhere.get("/api/status", headers={"host": "evil.example"}).status_code == 400


def test_a_served_console_refuses_a_foreign_name_on_the_wire() -> None:
    server = serve(create_app(NOBODY), port=0)
    try:
        assert httpx.get(f"{server.url}/api/status").status_code == 200
        assert httpx.get(f"{server.url}/api/status", headers={"host": "evil.example"}).status_code == 400
    finally:
        server.stop()


@pytest.mark.parametrize("path", ["/", "/page/chart.js", "/page/vendor/uPlot.iife.min.js"])
def test_what_a_browser_loads_is_compressed(path: str) -> None:
    console = client()
    with console.stream("GET", path, headers={"accept-encoding": "gzip"}) as reply:
        sent = len(b"".join(reply.iter_raw()))
    assert sent < len(console.get(path, headers={"accept-encoding": "identity"}).content) / 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0}, {"limit": 1_501}, {"limit": 10**12}, {"start": -1}, {"end": 10**18}, {"start": NOW + 1},
        {"start": 0}, {"entity": "e" * 513}, {"metric": "m" * 513}, {"entity": ""}, {"start": "yesterday"},
    ],
    ids=str,
)  # fmt: skip
def test_a_series_without_bounds_is_refused_before_elasticsearch_is_asked(wrong: dict[str, object]) -> None:
    assert client().get("/api/series", params=SERIES | wrong).status_code == 422
    assert client().get("/api/series", params=SERIES).json()["code"] == "ELASTICSEARCH_UNREACHABLE"


@pytest.mark.parametrize("query", ["limit=1001", "limit=0", "entity=" + "e" * 513, "min_score=101", "kind=bogus"])
def test_the_list_of_novelties_is_bounded_too(query: str) -> None:
    assert client().get(f"/api/novelties?{query}").status_code == 422
    assert client().get("/api/novelty?id=a&zoom=257").status_code == 422
    assert client().get("/api/novelty?id=" + "i" * 513).status_code == 422


@pytest.fixture
def stored(endpoints: Endpoints) -> Iterator[Store]:
    """A hundred windows of one series."""
    name = f"c{uuid.uuid4().hex[:10]}"
    documents = []
    for i in range(100):
        at = NOW - i * 10_000
        tree = {"host.name": "a", "metric": "cpu", "window_start": at - 10_000, "@timestamp": at, "kind": "normal"}
        documents.append(SinkDocument(json.dumps(tree | {"record_score": i / 2, "probability": 0.5}).encode()))
    sink = Sink(SinkConfig(endpoints.elasticsearch_url, index=name, alias=name))
    assert sink.write(documents).indexed == 100
    sink.close()
    store = Store(endpoints.elasticsearch_url, name)
    yield store
    store.close()
    with Elasticsearch(endpoints.elasticsearch_url) as server:
        for index in server.indices.get_alias(name=name):
            server.indices.delete(index=index)
        server.indices.delete_index_template(name=f"newnormal-{name}")


@pytest.mark.servers
def test_a_question_that_elasticsearch_refuses_is_not_said_to_be_an_absence_of_it(stored: Store) -> None:
    with pytest.raises(NewnormalError, match="Result window is too large") as caught:
        stored.newest(limit=20_000)
    assert caught.value.code == "ELASTICSEARCH_QUERY_REFUSED"
    app = create_app(stored)
    app.get("/api/refused")(lambda: stored.newest(limit=20_000))
    reply = TestClient(app, base_url="http://localhost").get("/api/refused")
    assert (reply.status_code, reply.json()["code"]) == (400, "ELASTICSEARCH_QUERY_REFUSED")


@pytest.mark.servers
@pytest.mark.parametrize("limit", [1, 7, 40, 100])
def test_no_more_points_come_than_were_asked_for_and_the_highest_score_is_among_them(stored: Store, limit: int) -> None:
    page = TestClient(create_app(stored), base_url="http://localhost")
    points = page.get("/api/series", params=SERIES | {"limit": limit}).json()["series"]
    assert 0 < len(points) <= limit
    assert max(point["record_score"] for point in points) == 49.5
