"""What the console takes from operators, and what it refuses: other sites, other users, wrong values."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Access, Store, create_app
from engine.spec.errors import NewnormalError

OURS = {"X-Newnormal": "console", "Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
LABEL = {"entity": "db-1", "metric": "cpu", "start": 1_000, "verdict": "false_alarm"}
MAINTENANCE = {"entity": "db-1", "minutes": 30}
ACKNOWLEDGEMENT = {"incident": "ab12", "by": "ann"}
RULE = {"name": "full", "entity": "db-*", "metric": "disk*", "above": "95%", "effect": "report", "minutes": 60}
EACH = [("label", LABEL), ("maintenance", MAINTENANCE), ("acknowledgement", ACKNOWLEDGEMENT)]
OF_RULES = [("rule", RULE), ("rule/withdrawal", {"name": "full"}), ("rule/try", RULE), ("rule/proposals", {})]
OF_AN_INCIDENT = ("incident/label", {"incident": "ab12", "verdict": "false_alarm"})


class Written:
    """Remembers what is written, at the edge of the console; `tests.pipelines.query` has the real writer."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def label(self, *given: Any) -> int:
        self.said.append(given)
        return 7_000

    def labels(self, *given: Any) -> int:
        return self.label(*given)

    def in_force(self) -> dict[str, list[Any]]:
        return {"rules": [], "labels": [], "placements": []}

    def acknowledge(self, *given: Any) -> None:
        if given[0] == "over":
            raise NewnormalError("INCIDENT_OVER", "incident over is resolved", "incidents", "one that is open")
        self.said.append(given)

    def maintain(self, *given: Any) -> tuple[str, int]:
        self.said.append(given)
        return "maintenance of db-1", 9_000


def page(written: Written | None, **more: Any) -> TestClient:
    return TestClient(create_app(Store("http://127.0.0.1:9"), actions=written, **more), base_url="http://localhost")


def test_what_an_operator_says_is_written_as_it_was_said() -> None:
    written = Written()
    replies = [page(written).post(f"/api/{path}", json=body, headers=OURS) for path, body in EACH]
    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert [reply.json() for reply in replies[:2]] == [{"from": 7_000}, {"rule": "maintenance of db-1", "until": 9_000}]
    assert written.said == [
        ("db-1", "cpu", 1_000, "false_alarm", ""), ("db-1", 30, ""), ("ab12", True, "ann", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), [*EACH, *OF_RULES, OF_AN_INCIDENT])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://localhost"},  # a form of another page cannot send the header
        OURS | {"X-Newnormal": "other"},
        OURS | {"Origin": "http://evil.example"},
        OURS | {"Origin": "null"},
        OURS | {"Origin": "http://localhost:1"},
        OURS | {"Sec-Fetch-Site": "cross-site"},
        OURS | {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_page_can_say_nothing(path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
    written = Written()
    reply = page(written).post(f"/api/{path}", json=body, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (403, "ACTION_REFUSED")
    assert written.said == []


def test_no_page_is_allowed_to_ask_from_elsewhere() -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    reply = page(Written()).options("/api/label", headers=headers | {"Access-Control-Request-Headers": "x-newnormal"})
    assert "access-control-allow-origin" not in reply.headers
    assert reply.status_code == 405


def test_a_name_that_is_not_its_own_can_say_nothing() -> None:
    written = Written()
    reply = page(written).post("/api/label", json=LABEL, headers=OURS | {"Host": "evil.example"})
    assert (reply.status_code, reply.json()["code"], written.said) == (400, "HOST_REFUSED", [])


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("label", LABEL | {"verdict": "maybe"}, "verdict"),
        ("label", LABEL | {"entity": ""}, "entity"),
        ("label", LABEL | {"metric": "m" * 513}, "metric"),
        ("label", LABEL | {"start": -1}, "start"),
        ("label", LABEL | {"start": "1000"}, "start"),
        ("label", LABEL | {"other": 1}, "other"),
        ("label", LABEL | {"note": "n" * 4_097}, "note"),
        ("maintenance", MAINTENANCE | {"minutes": -1}, "minutes"),
        ("maintenance", MAINTENANCE | {"minutes": 30 * 24 * 60 + 1}, "minutes"),
        ("acknowledgement", ACKNOWLEDGEMENT | {"by": "b" * 201}, "by"),
        ("acknowledgement", {"by": "ann"}, "incident"),
    ],
)
def test_a_wrong_value_is_named_and_nothing_is_written(path: str, body: dict[str, Any], named: str) -> None:
    written = Written()
    reply = page(written).post(f"/api/{path}", json=body, headers=OURS)
    assert (reply.status_code, reply.json()["code"], written.said) == (422, "REQUEST_INVALID", [])
    assert named in reply.json()["detail"]


def test_what_the_pipeline_refuses_is_said_with_its_code_and_what_is_accepted() -> None:
    reply = page(Written()).post("/api/acknowledgement", json={"incident": "over"}, headers=OURS)
    assert (reply.status_code, reply.json()["code"]) == (409, "INCIDENT_OVER")
    assert "accepted: one that is open" in reply.json()["detail"]


def test_without_a_pipeline_the_console_only_shows_and_says_so() -> None:
    silent = page(None)
    assert silent.get("/api/actions").json()["possible"] is False
    reply = silent.post("/api/label", json=LABEL, headers=OURS)
    assert (reply.status_code, reply.json()["code"]) == (403, "ACTION_REFUSED")
    assert page(Written()).get("/api/actions").json() == {"possible": True, "why": "", "by": None}


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "192.0.2.7", "::"])
def test_where_a_proxy_names_the_operators_nobody_else_can_say_anything(address: str) -> None:
    written = Written()
    app = create_app(
        Store("http://127.0.0.1:9"), listening=address, actions=written, access=Access(address, "", "X-Forwarded-User")
    )
    proxy, user = (TestClient(app, "http://localhost", client=(peer, 5_000)) for peer in ("127.0.0.1", "192.0.2.9"))
    named = OURS | {"X-Forwarded-User": "eve"}
    unnamed = proxy.post("/api/acknowledgement", json=ACKNOWLEDGEMENT, headers=OURS)
    forged = user.post("/api/acknowledgement", json=ACKNOWLEDGEMENT, headers=named)
    status = 403 if address == "127.0.0.1" else 401
    assert (unnamed.status_code, forged.status_code, written.said) == (status, status, [])
    assert proxy.post("/api/acknowledgement", json=ACKNOWLEDGEMENT, headers=named).status_code == 200
    assert written.said == [("ab12", True, "eve", "")], "the name is the proxy's, not one that the user chose"
    assert proxy.get("/api/actions", headers=named).json() == {"possible": True, "why": "", "by": "eve"}
