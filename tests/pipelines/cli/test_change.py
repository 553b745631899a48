"""`newnormal change` on a real topic: what people see, what is written, and the rules for what is expected."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from deploy.embedded.endpoints import Endpoints
from engine.spec.duration import epoch_ms
from tests.pipelines.cli.conftest import Run

pytestmark = [pytest.mark.servers, pytest.mark.timeout(120)]


@pytest.fixture(autouse=True)
def namespace(endpoints: Endpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace of the test's own, without topics."""
    monkeypatch.setenv("NEWNORMAL_NAMESPACE", f"chg{uuid.uuid4().hex[:8]}.")
    monkeypatch.setenv("NEWNORMAL_KAFKA__BOOTSTRAP", endpoints.bootstrap)


def listed(run: Run, *command: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*command, "list", "--json")[1].splitlines()]


def test_changes_are_reported_corrected_and_listed_the_last_one_first(run: Run) -> None:
    assert run("change", "list")[:2] == (0, "no change was reported; `newnormal change add` reports one\n")
    code, told, _ = run("change", "add", "cart 1.4", "--machine", "web-*", "--kind", "deployment", "--id", "a")
    assert (code, told.splitlines()[0]) == (0, "a: cart 1.4, on web-*")
    assert run("change", "add", "new switch", "--at", "-20m", "--until", "now")[1].endswith("on the whole site\n")
    run("change", "add", "cart 1.4.1", "--machine", "web-*", "--id", "a")
    found = listed(run, "change")
    assert [(each["message"], each["kind"], each["machines"]) for each in found] == [
        ("cart 1.4.1", "other", ["web-*"]),
        ("new switch", "other", []),
    ]
    shown = run("change", "list")[1]
    assert shown.index("cart 1.4.1") < shown.index("new switch") and "cart 1.4 " not in shown


def test_changes_of_two_kinds_are_two_whatever_else_they_have_in_common(run: Run) -> None:
    at = "2026-01-05T00:00:00Z"
    for kind in ("cordon", "uncordon", "cordon"):
        assert run("change", "add", "kernel", "--machine", "node-1", "--kind", kind, "--at", at)[0] == 0
    assert sorted(each["kind"] for each in listed(run, "change")) == ["cordon", "uncordon"]


def test_what_is_expected_is_muted_and_not_learned(run: Run) -> None:
    told = run("change", "add", "kernel", "--machine", "host-1", "--machine", "host-2", "--expected", "30m")[1]
    assert told.count("is muted for 30m") == 2
    rules = listed(run, "rule")
    assert sorted(each["entity"] for each in rules) == ["host-1", "host-2"]
    assert all(each["skip_result"] and each["skip_learning"] for each in rules)
    assert {epoch_ms(each["end"]) - epoch_ms(each["start"]) for each in rules} == {30 * 60_000}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["x" * 1_025], "CHANGE_INVALID"),
        (["x", "--machine", "y" * 513], "CHANGE_INVALID"),
        (["x", "--kind", "cordon", "--machine", "node-*"], "CHANGE_INVALID"),
        (["x", "--kind", "ending", "--machine", "shop/cart-?"], "CHANGE_INVALID"),
        (["x", "--kind", "ended"], "CHANGE_INVALID"),
        (["x", "--at", "+2h"], "TIME_AHEAD"),
        (["x", "--at", "-1h", "--until", "-2h"], "CHANGE_INVALID"),
        (["x", "--at", "0001-01-01T00:00:00+14:00"], "TIME_INVALID"),
        (["x", "--expected", "soon"], "DURATION_INVALID"),
    ],
)
def test_a_wrong_change_is_refused_with_its_code_and_nothing_is_written(run: Run, words: list[str], code: str) -> None:
    ended, _, told = run("change", "add", *words)
    assert ended == 2 and told.startswith(f"{code}: ")
    assert listed(run, "change") == listed(run, "rule") == []
