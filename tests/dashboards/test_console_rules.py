"""What the console takes and refuses about rules: who may try and give one, one trial at a time, reasons with codes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Access, Store, create_app
from engine.spec.errors import NewnormalError
from tests.dashboards.test_console_actions import OURS, RULE, Written


class Rules(Written):
    """Remembers what is written and tried, at the edge of the console."""

    def rule(self, **given: Any) -> int:
        self.said.append(("rule", given))
        return 7_000

    def withdraw(self, name: str) -> int:
        if name != "full":
            raise NewnormalError("RULE_UNKNOWN", f"there is no rule {name}", "rule remove", "full", "nothing changed")
        self.said.append(("withdraw", name))
        return 8_000

    def tried(self, **given: Any) -> dict[str, Any]:
        self.said.append(("try", given))
        return {"lines": []}

    def proposed(self, days: int) -> dict[str, Any]:
        self.said.append(("propose", days))
        return {"proposals": []}


def page(rules: Rules, trials: Any = None, **more: Any) -> TestClient:
    app = create_app(Store("http://127.0.0.1:9"), actions=rules, trials=trials or rules, **more)
    return TestClient(app, base_url="http://localhost")


def say(client: TestClient, path: str, body: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    reply = client.post(f"/api/{path}", json=body, headers=OURS | headers)
    return reply.status_code, reply.json()


SAID = {
    "fields": {
        "id": "full", "entity": "db-*", "metric": "disk*", "times": "", "timezone": "UTC", "note": "", "report": True,
    },
    "limits": {"above": "95%", "below": None}, "minutes": 60,
}  # fmt: skip


def test_what_is_tried_is_what_is_saved() -> None:
    rules = Rules()
    assert say(page(rules), "rule/try", RULE | {"days": 7}) == (200, {"lines": []})
    assert say(page(rules), "rule", RULE) == (200, {"from": 7_000})
    assert say(page(rules), "rule/withdrawal", {"name": "full"}) == (200, {"until": 8_000})
    assert say(page(rules), "rule/proposals", {}) == (200, {"proposals": []})
    tried, given, *rest = rules.said
    assert tried == ("try", SAID | {"days": 7}) and given == ("rule", SAID)
    assert rest == [("withdraw", "full"), ("propose", 30)]


@pytest.mark.parametrize(
    ("effect", "fields", "limits"),
    [
        ("skip_result", {"skip_result": True}, {}),
        ("up", {"only": "up"}, {}),
        ("down", {"only": "down"}, {}),
        ("min_change", {}, {"min_change": "5%"}),
        ("min_change_share", {}, {"min_change_share": "5%"}),
    ],
)
def test_each_effect_of_the_form_is_that_of_a_rule(effect: str, fields: dict[str, Any], limits: dict[str, str]) -> None:
    rules = Rules()
    assert say(page(rules), "rule", RULE | {"effect": effect, "amount": "5%"})[0] == 200
    ((_, given),) = rules.said
    plain = {name: value for name, value in SAID["fields"].items() if name != "report"}  # type: ignore[attr-defined]
    assert given["fields"] == plain | fields
    assert given["limits"] == SAID["limits"] | limits  # type: ignore[operator]


@pytest.mark.parametrize("path", ["rule", "rule/try"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""}, {"name": "n" * 257}, {"entity": ""}, {"metric": "m" * 513}, {"times": "t" * 513},
        {"effect": "all"}, {"above": 5}, {"above": "9" * 41}, {"minutes": 0}, {"minutes": 366 * 24 * 60 + 1},
        {"other": 1}, {"note": "n" * 4_097},
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_and_nothing_is_tried_or_written(path: str, wrong: dict[str, Any]) -> None:
    rules = Rules()
    status, reply = say(page(rules), path, RULE | wrong)
    assert (status, reply["code"], rules.said) == (422, "REQUEST_INVALID", [])
    assert next(iter(wrong)) in reply["detail"]


@pytest.mark.parametrize("days", [0, 31, "7"])
def test_days_are_bounded(days: Any) -> None:
    assert say(page(Rules()), "rule/try", RULE | {"days": days})[0] == 422
    assert say(page(Rules()), "rule/proposals", {"days": days})[0] == 422


def test_who_may_say_nothing_may_try_nothing() -> None:
    rules = Rules()
    app = page(rules, access=Access("127.0.0.1", "", "X-Forwarded-User")).app
    proxy = TestClient(app, "http://localhost", client=("127.0.0.1", 5_000))
    for path, body in (
        ("rule", RULE),
        ("rule/try", RULE),
        ("rule/proposals", {}),
        ("rule/withdrawal", {"name": "full"}),
    ):
        status, reply = say(proxy, path, body)
        assert (status, reply["code"], rules.said) == (403, "ACTION_REFUSED", [])
    assert say(proxy, "rule/try", RULE, **{"X-Forwarded-User": "eve"})[0] == 200
    silent = TestClient(create_app(Store("http://127.0.0.1:9"), trials=rules), "http://localhost")
    assert say(silent, "rule/try", RULE)[0] == 403


def test_a_console_without_trials_says_so_and_still_takes_rules() -> None:
    rules = Rules()
    client = TestClient(create_app(Store("http://127.0.0.1:9"), actions=rules), "http://localhost")
    assert say(client, "rule/try", RULE)[0] == 404
    assert say(client, "rule", RULE)[0] == 200


def test_what_is_refused_is_said_with_its_code() -> None:
    class Refusing(Rules):
        def tried(self, **given: Any) -> dict[str, Any]:
            raise NewnormalError("VERSION_EMPTY", "no verdict is stored of that time", "x", "any verdict", "nothing")

    rules = Refusing()
    assert say(page(rules), "rule/try", RULE)[1] == {
        "code": "VERSION_EMPTY", "detail": "no verdict is stored of that time; accepted: any verdict"
    }  # fmt: skip
    assert say(page(rules), "rule/try", RULE)[1]["code"] == "VERSION_EMPTY", "a trial that failed keeps nobody waiting"
    assert say(page(rules), "rule/withdrawal", {"name": "other"})[0] == 404


def test_one_rule_is_tried_at_a_time() -> None:
    begun, go = threading.Event(), threading.Event()

    class Slow(Rules):
        def tried(self, **given: Any) -> dict[str, Any]:
            begun.set()
            assert go.wait(30)
            return super().tried(**given)

    client, first = page(Slow()), list[Any]()
    thread = threading.Thread(target=lambda: first.append(say(client, "rule/try", RULE)))
    thread.start()
    assert begun.wait(30)
    for path, body in (("rule/try", RULE), ("rule/proposals", {})):
        status, reply = say(client, path, body)
        assert (status, reply["code"]) == (409, "TRIAL_BUSY")
    go.set()
    thread.join(30)
    assert [status for status, _ in first] == [200]
    assert say(client, "rule/proposals", {})[0] == 200


def test_the_rules_that_are_there_are_listed() -> None:
    class Standing(Rules):
        def in_force(self) -> dict[str, list[Any]]:
            return super().in_force() | {"rules": [{"id": "night", "@timestamp": 1}]}

    assert page(Standing()).get("/api/rules").json()["rules"] == [{"id": "night", "@timestamp": 1}]
    shows = TestClient(create_app(Store("http://127.0.0.1:9")), "http://localhost").get("/api/rules").json()
    assert shows["rules"] == [] and "reads no topics" in shows["missing"]
