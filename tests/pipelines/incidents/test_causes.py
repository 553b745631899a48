"""Where an incident of services that call each other is said to have begun, and with which share."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.jobs.incidents.calls import Calls
from tests.pipelines.incidents.cases import MINUTE, STEP, Feed, episode, outage

CHAIN = {"web": ("api",), "api": ("cart",), "cart": ("db",)}


def shows(entity: str, start: int, score: float = 75.0, series: int = 2) -> list[dict[str, Any]]:
    return [row for n in range(series) for row in episode(entity, f"{entity}.{n}", start, 9 * MINUTE, score)]


def found(*rows: list[dict[str, Any]], graph: dict[str, tuple[str, ...]] = CHAIN) -> Any:
    feed = Feed()
    for name, called in graph.items():
        feed.place(name, None, calls=called)
    feed.send([row for some in rows for row in some], 5 * MINUTE)
    (only,) = feed.standing
    return only


def test_of_a_chain_that_begins_at_one_time_the_deepest_service_is_named_first_though_the_caller_is_stronger() -> None:
    only = found(shows("web", 0, 80.0), shows("api", 0), shows("cart", 0), shows("db", 0))
    assert [each.entity for each in only.candidates] == ["db", "cart", "api", "web"]
    assert "3 of the other machines depend on it" in only.candidates[0].reason
    assert "it may show what db does, on which it depends" in only.candidates[1].reason


def test_a_deep_service_with_weak_evidence_does_not_explain_what_calls_it() -> None:
    only = found(shows("web", 0), shows("api", 0), shows("cart", 0, series=5), shows("db", 0, 52.0, series=1))
    assert only.candidates[0].entity == "cart"


def test_a_deep_service_that_began_minutes_later_is_not_the_cause() -> None:
    only = found(shows("api", 0), shows("cart", 0), shows("db", 150_000))
    assert [each.entity for each in only.candidates][:2] == ["cart", "api"]


def test_services_that_call_each_other_explain_none_of_each_other_away() -> None:
    only = found(shows("a", 0), shows("b", 0), graph={"a": ("b",), "b": ("a",)})
    shares = [each.share for each in only.candidates]
    assert shares[0] == shares[1] and not any("may show" in each.reason for each in only.candidates)


def test_one_that_is_not_novel_itself_passes_on_what_the_one_below_it_explains() -> None:
    calls = Calls({"web": 0, "db": 0}, {"web": 3.0, "db": 3.0}, {k: list(v) for k, v in CHAIN.items()}, {}, MINUTE)
    assert calls.explained("db") == (1.0, frozenset({"web"})) and calls.effect("web") == (1.0, "db")


def test_a_host_is_none_of_the_services_that_a_machine_calls() -> None:
    calls = Calls({"web": 0, "host": 0}, {"web": 3.0, "host": 3.0}, {"web": ["host"]}, {"web": "host"}, MINUTE)
    assert calls.explained("host") == (0, frozenset()) and calls.effect("web") == (0.0, "")


def test_the_weaker_and_the_later_the_cause_the_less_it_explains() -> None:
    """With half of the evidence half, and less by the factor e for each minute, here e."""
    calls = Calls({"web": 0, "db": MINUTE}, {"web": 4.0, "db": 2.0}, {"web": ["db"]}, {}, MINUTE)
    effect, of = calls.effect("web")
    assert (effect, of) == (pytest.approx(0.5 * 0.36788, abs=1e-4), "db")


def test_none_of_its_machines_is_likely_if_there_is_little_evidence_and_unlikely_if_there_is_much() -> None:
    little, much = Feed(), Feed()
    little.send([row for n in range(5) for row in episode(f"m-{n}", "cpu", 0, MINUTE, 51.0)], MINUTE)
    much.send(outage([f"m-{n}" for n in range(3)], 0, 5 * MINUTE), STEP)
    (weak,), (strong,) = little.standing, much.standing
    assert weak.unknown_share > max(each.share for each in weak.candidates)
    assert strong.unknown_share < 0.25
    for each in (weak, strong):
        assert sum(c.share for c in each.candidates) + each.unknown_share == pytest.approx(1, abs=0.01)
