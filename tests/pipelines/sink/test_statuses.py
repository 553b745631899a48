"""What is done at which HTTP status: the same request again, the request in halves, or the end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import ApiError, Elasticsearch

from engine.spec.errors import NewnormalError
from pipelines.jobs.sink import SinkDocument, backoff
from pipelines.jobs.sink.backoff import Backoff, Patience
from pipelines.jobs.sink.bulk import Action, BulkWriter, Limits
from pipelines.jobs.sink.lanes import Lanes

PATIENCE = Patience(Backoff(first_s=0.001, most_s=0.001, give_up_after_s=30.0), threading.Event(), "here")


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.1), (2, 0.2), (4, 0.8), (40, 5.0), (10_000, 5.0)])
def test_pauses_double_up_to_the_longest_and_each_is_at_least_half_of_its_longest(attempt: int, longest: float) -> None:
    pauses = [Backoff(first_s=0.1, most_s=5.0).pause_s(attempt) for _ in range(2000)]
    assert 0.5 * longest <= min(pauses) < 0.55 * longest
    assert 0.95 * longest < max(pauses) <= longest


class _Answers:
    """A call that is answered with these HTTP statuses, one after the other."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)

    def __call__(self) -> str:
        status = self.statuses.pop(0)
        if status == 200:
            return "done"
        node = NodeConfig("http", "127.0.0.1", 9200)
        raise ApiError(str(status), ApiResponseMeta(status, "1.1", HttpHeaders(), 0.0, node), {})


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_request_that_may_succeed_later_is_made_until_it_does(status: int) -> None:
    answers = _Answers(status, status, 200)
    assert PATIENCE.insist(answers) == "done"
    assert not answers.statuses


@pytest.mark.parametrize("status", [400, 404, 409, 413])
def test_a_request_that_can_never_succeed_is_made_once(status: int) -> None:
    answers = _Answers(status, 200)
    with pytest.raises(ApiError):
        PATIENCE.insist(answers)
    assert answers.statuses == [200]


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_does_not_let_us_write_ends_the_job(status: int) -> None:
    with pytest.raises(NewnormalError, match="ELASTICSEARCH_REFUSED"):
        PATIENCE.insist(_Answers(status, 200))


def test_a_wait_that_ends_with_an_error_is_told_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "_REPORTED_AFTER_S", 0.0)
    patience = Patience(Backoff(first_s=0.001, most_s=0.001), threading.Event(), "here")
    with patience.wait() as other:
        other.pause("a full disk")
        with pytest.raises(ApiError):
            patience.insist(_Answers(429, 413))
        assert (patience.problem() or "").endswith("a full disk"), "another thread waits still"
    assert patience.problem() is None


MOST = 2_000
"""Bytes of a request that the proxy lets through."""


class _Proxy(BaseHTTPRequestHandler):
    """A server that takes what bulk requests of at most `MOST` bytes bring, and refuses larger ones with 413."""

    protocol_version = "HTTP/1.1"
    got: ClassVar[list[str]] = []

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        names = [json.loads(line)["index"]["_id"] for line in body.splitlines()[::2]]
        if len(body) <= MOST:
            self.got.extend(names)
        items = [{"index": {"status": 201}} for _ in names]
        self.answer(200, {"items": items}) if len(body) <= MOST else self.answer(413, {"error": "too large"})

    def answer(self, status: int, tree: dict[str, Any]) -> None:
        text = json.dumps(tree).encode()
        self.send_response(status)
        for name, value in (("Content-Length", str(len(text))), ("X-Elastic-Product", "Elasticsearch")):
            self.send_header(name, value)
        self.send_header("Content-Type", "application/vnd.elasticsearch+json; compatible-with=8")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    _Proxy.got.clear()
    _Busy.stored.clear()
    _Busy.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), request.param) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("server", [_Proxy], indirect=True)
def test_a_request_too_large_for_a_proxy_is_halved_until_the_culprit_stands_alone(server: str) -> None:
    sizes = [100, 200, 3_000, 300, 400, 500]
    actions = [
        Action(SinkDocument(b""), "i", f"{i}", 1, 0, json.dumps({"text": "x" * size}).encode())
        for i, size in enumerate(sizes)
    ]
    with Elasticsearch(server) as client:
        done = BulkWriter(client, Limits(), PATIENCE).write(actions)
    assert _Proxy.got == ["0", "1", "3", "4", "5"], "all others, each once, in order"
    assert [action.id for action in done.stored] == _Proxy.got
    assert [(rejected.document, rejected.code) for rejected in done.rejected] == [(actions[2].document, "TOO_LARGE")]


class _Busy(_Proxy):
    """A server that is overloaded: it refuses every third document of a request with 429, and stores the others."""

    stored: ClassVar[list[tuple[str, int]]] = []
    requests: ClassVar[list[int]] = []

    def do_PUT(self) -> None:
        lines = self.rfile.read(int(self.headers["Content-Length"])).splitlines()
        heads = [json.loads(line)["index"] for line in lines[::2]]
        self.requests.append(len(heads))
        statuses = [429 if place % 3 == 1 else 201 for place in range(len(heads))]
        for head, body, status in zip(heads, lines[1::2], statuses, strict=True):
            if status == 201:
                self.stored.append((head["_id"], json.loads(body)["number"]))
        items = [{"index": {"status": 429, "error": {"type": "busy"}} if s == 429 else {"status": s}} for s in statuses]
        self.answer(200, {"items": items})


@pytest.mark.parametrize(("number", "first"), [(200, 200), (201, 51)])
@pytest.mark.parametrize("server", [_Busy], indirect=True)
def test_what_goes_into_one_request_is_not_spread_over_connections(server: str, number: int, first: int) -> None:
    """Each bulk request that is under way beside others leaves a segment of its own at the refresh of a window.

    The largest request is that of all documents, or of about a quarter of them with one document too many.
    """
    actions = [Action(SinkDocument(b""), "i", f"{name}", 1, 0, b'{"number": 0}') for name in range(number)]
    with Elasticsearch(server) as client:
        done = Lanes(BulkWriter(client, Limits(), PATIENCE), 4, documents=200).write(actions, len(actions))
    assert len(done.stored) == number
    assert abs(max(_Busy.requests) - first) <= (0 if first == number else 25)


@pytest.mark.parametrize("server", [_Busy], indirect=True)
def test_of_documents_that_are_refused_for_now_each_is_stored_in_its_order_over_all_connections(server: str) -> None:
    """What is written again with the same revision, as after a restored savepoint, must end as it was written last."""
    actions = [
        Action(SinkDocument(b""), "i", f"{number % 13}", 1, 0, b'{"number": %d}' % number) for number in range(150)
    ]
    with Elasticsearch(server) as client:
        done = Lanes(BulkWriter(client, Limits(), PATIENCE), 4, documents=3).write(actions, len(actions))
    assert (len(done.stored) + done.superseded, done.rejected) == (150, [])
    assert max(_Busy.requests) <= 3
    order: dict[str, list[int]] = {}
    for name, number in _Busy.stored:
        order.setdefault(name, []).append(number)
    assert all(numbers == sorted(numbers) for numbers in order.values()), "no repetition overtakes a later document"
    assert {numbers[-1] for numbers in order.values()} == set(range(150 - 13, 150))
