"""The comparison of versions in the console: it is begun by the console's own page only, one at a time, and kept."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Store, Versions, create_app
from engine.spec.errors import NewnormalError

OURS = {"X-Newnormal": "console", "Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
BOTH = {"first": "v1", "second": "v2"}
PATIENCE = 60.0


def found(first: str, second: str, number: int) -> dict[str, Any]:
    points = [{"@timestamp": 1_000 * i, "actual": 1.0, "kind": "normal"} for i in range(3)]
    sides = [{"version": name, "reason": f"{name} has a reason", "points": points} for name in (first, second)]
    difference = {"entity": "db-1", "metric": "cpu", "outcome": "new", "versions": sides}
    return {"versions": [first, second], "headline": f"number {number}", "differences": [difference]}


class Slow:
    """Compares when it is let to; `tests.pipelines.cli.test_compare` has what really compares."""

    def __init__(self) -> None:
        self.gate, self.calls = threading.Event(), 0

    def listed(self) -> list[dict[str, Any]]:
        return [{"name": "v1", "shown": True}, {"name": "v2", "shown": False}]

    def compared(self, first: str, second: str) -> dict[str, Any]:
        self.calls += 1
        assert self.gate.wait(PATIENCE)
        if second == "v9":
            raise NewnormalError("VERSION_UNKNOWN", "there is no version v9", "versions", "v1, v2")
        if second == "v8":
            raise ZeroDivisionError("division by zero")
        return found(first, second, self.calls)


def page(versions: Versions | None) -> TestClient:
    return TestClient(create_app(Store("http://127.0.0.1:9"), versions=versions), base_url="http://localhost")


def done(client: TestClient, **both: str) -> Any:
    """The answer about a comparison that ends."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        reply = client.get("/api/comparison", params=both)
        if reply.status_code != 200 or reply.json()["state"] == "done":
            return reply
        pause.wait(0.02)
    raise AssertionError("the comparison does not end")


def test_a_comparison_is_begun_goes_on_and_is_kept() -> None:
    slow = Slow()
    client = page(slow)
    assert client.get("/api/comparison", params=BOTH).json()["state"] == "none"
    assert client.post("/api/comparison", json=BOTH, headers=OURS).json()["state"] == "running"
    assert client.post("/api/comparison", json=BOTH, headers=OURS).json()["state"] == "running"
    other = client.post("/api/comparison", json=BOTH | {"second": "v3"}, headers=OURS)
    assert (other.status_code, other.json()["code"]) == (409, "COMPARISON_BUSY")
    slow.gate.set()
    told = done(client, **BOTH).json()["found"]
    assert told["headline"] == "number 1"
    assert [set(side) for side in told["differences"][0]["versions"]] == [{"version", "reason"}] * 2, "plots come later"
    series = client.get("/api/comparison/difference", params=BOTH | {"at": 0}).json()
    assert [len(side["points"]) for side in series["versions"]] == [3, 3]
    assert client.get("/api/comparison/difference", params=BOTH | {"at": 1}).status_code == 404
    assert slow.calls == 1
    client.post("/api/comparison", json=BOTH, headers=OURS)
    assert done(client, **BOTH).json()["found"]["headline"] == "number 2", "asked again, it is made anew"


@pytest.mark.parametrize(
    ("second", "status", "code"), [("v9", 404, "VERSION_UNKNOWN"), ("v8", 500, "COMPARISON_FAILED")]
)
def test_a_comparison_that_fails_says_why_and_can_be_tried_again(second: str, status: int, code: str) -> None:
    slow = Slow()
    client = page(slow)
    slow.gate.set()
    for _ in range(2):
        client.post("/api/comparison", json=BOTH | {"second": second}, headers=OURS)
        reply = done(client, first="v1", second=second)
        assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert slow.calls == 2


@pytest.mark.parametrize("headers", [{}, OURS | {"Origin": "http://evil.example"}, {"Origin": "http://localhost"}])
def test_another_page_cannot_begin_a_comparison(headers: dict[str, str]) -> None:
    slow = Slow()
    reply = page(slow).post("/api/comparison", json=BOTH, headers=headers)
    assert (reply.status_code, reply.json()["code"], slow.calls) == (403, "ACTION_REFUSED", 0)


def test_a_console_that_knows_no_versions_says_so() -> None:
    assert page(None).get("/api/versions").json()["known"] is False
    assert page(None).get("/api/comparison", params=BOTH).status_code == 404
    assert page(Slow()).get("/api/versions").json()["versions"][0] == {"name": "v1", "shown": True}
