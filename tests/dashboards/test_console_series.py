"""What the console answers about one series and one machine, asked of a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Store, create_app
from dashboards.console.belief import completed
from deploy.embedded.endpoints import Endpoints
from engine.spec.errors import NewnormalError
from tests.dashboards.console_documents import (
    AT,
    DAY,
    END,
    LENGTH,
    MACHINE,
    MACHINE_INCIDENTS,
    MACHINE_NOVELTIES,
    WINDOW,
    stored_site,
)  # fmt: skip

QUIET = {"host.name": MACHINE, "metric": "quiet", "kind": "normal", "regime": 1, "regimes": [3.0, 8.0], "typical": 8.0}


def view(entity: str, metric: str) -> dict[str, Any]:
    """A state view that knows the series `quiet` of `MACHINE`, and cpu."""
    if metric not in ("quiet", "cpu"):
        return {"state": None, "windows": [], "age": {}}
    windows = [{"window_end": END - (9 - i) * WINDOW, "mean": float(i), "rate": 70.0} for i in range(10)]
    return {"state": QUIET, "windows": windows, "age": {"event_time": "2026-11-23T12:00:00Z"}}


def away(entity: str, metric: str) -> dict[str, Any]:
    raise NewnormalError("VIEW_UNREACHABLE", "nobody answers", "view")


@pytest.fixture(scope="module")
def store(endpoints: Endpoints) -> Iterator[Store]:
    with stored_site(endpoints.elasticsearch_url, MACHINE_NOVELTIES, MACHINE_INCIDENTS) as found:
        yield found


def asked(store: Store, ask: Any = None, **query: Any) -> dict[str, Any]:
    page = TestClient(create_app(store, view=ask, zone="Europe/Berlin"), base_url="http://localhost")
    return dict(page.get("/api/series/page", params={"entity": MACHINE, "metric": "cpu", **query}).json())


def stored(metric: str, start: int, end: int) -> list[tuple[int, float | None]]:
    """The windows of a series of `MACHINE` from the documents themselves."""
    of = [each for each in MACHINE_NOVELTIES if (each.entity, each.metric) == (MACHINE, metric)]
    return sorted((each.window_end, each.actual) for each in of if start <= each.window_end <= end)


def pairs(points: list[dict[str, Any]]) -> list[tuple[int, float | None]]:
    return [(point["@timestamp"], point["actual"]) for point in points]


@pytest.mark.servers
def test_a_series_is_shown_up_to_its_newest_window_with_the_same_hour_a_day_and_a_week_before(store: Store) -> None:
    found = asked(store)
    span = (END - 3_600_000, END)
    assert tuple(found["span"]) == span
    assert pairs(found["series"]) == stored("cpu", *span)
    assert len(found["series"]) == LENGTH
    day, week = found["earlier"]
    assert (day["days"], tuple(day["span"])) == (1, (span[0] - DAY, span[1] - DAY))
    assert pairs(day["series"]) == stored("cpu", span[0] - DAY, span[1] - DAY)
    assert (week["days"], week["series"]) == (7, [])
    novel = [(each["@timestamp"], each["kind"]) for each in found["novelties"]]
    assert novel == [(END - (LENGTH - 1 - i) * WINDOW, "anomaly") for i in (AT + 2, AT + 1, AT)]
    assert [each["event.id"] for each in found["incidents"]] == ["nine", "nine-past"]
    assert found["zone"] == "Europe/Berlin"


@pytest.mark.servers
def test_a_link_may_name_an_earlier_end(store: Store) -> None:
    found = asked(store, hours=6, end=END - DAY)
    assert pairs(found["series"]) == stored("cpu", END - DAY - 6 * 3_600_000, END - DAY)
    assert found["novelties"] == []


@pytest.mark.servers
def test_a_series_that_elasticsearch_does_not_have_is_shown_from_the_state_view(store: Store) -> None:
    found = asked(store, view, metric="quiet")
    assert pairs(found["series"]) == [(END - (9 - i) * WINDOW, float(i)) for i in range(10)]
    assert found["known"]
    assert found["view"] == {"state": QUIET, "age": {"event_time": "2026-11-23T12:00:00Z"}, "missing": ""}
    mixed = asked(store, view)
    assert pairs(mixed["series"]) == stored("cpu", END - 3_600_000, END), "what is stored is not replaced"


@pytest.mark.servers
def test_without_a_state_view_the_page_has_what_elasticsearch_has_and_the_reason(store: Store) -> None:
    for ask, reason in ((None, "this console does not ask a state view"), (away, "VIEW_UNREACHABLE")):
        found = asked(store, ask)
        assert found["view"] == {"state": None, "age": None, "missing": reason}
        assert len(found["series"]) == LENGTH
    assert not asked(store, away, metric="no-such")["known"]


@pytest.mark.servers
def test_a_machine_lists_its_incidents_and_its_series_with_the_most_novel_first(store: Store) -> None:
    page = TestClient(create_app(store), base_url="http://localhost")
    found = page.get("/api/machine", params={"name": MACHINE}).json()
    listed = [(each["metric"], each["highest"], each["@timestamp"]) for each in found["series"]]
    alarms: dict[str, float] = {}
    newest: dict[str, int] = {}
    for each in MACHINE_NOVELTIES:
        if each.entity == MACHINE and each.window_end >= END - DAY:
            newest[each.metric] = max(each.window_end, newest.get(each.metric, 0))
            if each.kind == "anomaly":
                alarms[each.metric] = max(each.record_score, alarms.get(each.metric, 0.0))
    expected = sorted(newest, key=lambda metric: (-alarms.get(metric, -1.0), metric))
    assert listed == [(metric, alarms.get(metric), newest[metric]) for metric in expected]
    assert expected == ["disk", "cpu", "logs", "fan"]
    assert found["series_count"] == 4
    assert [each["event.id"] for each in found["incidents"]] == ["nine", "nine-past"]
    assert [each["log.template"] for each in found["logs"]] == ["<*> failed"]
    nobody = page.get("/api/machine", params={"name": "rack/9"}).json()
    assert (nobody["last"], nobody["series"], nobody["incidents"], nobody["logs"]) == (None, [], [], [])


@pytest.mark.parametrize(
    "query",
    [
        "series/page?entity=a", "series/page?entity=&metric=m", "series/page?entity=a&metric=m&hours=169",
        "series/page?entity=a&metric=m&hours=0", "series/page?entity=a&metric=m&end=0", "machine", "machine?name=",
        "machine?name=a&hours=721", "machine?name=" + "n" * 513,
    ],
)  # fmt: skip
def test_a_question_without_bounds_is_refused_before_elasticsearch_is_asked(query: str) -> None:
    page = TestClient(create_app(Store("http://127.0.0.1:9")), base_url="http://localhost")
    assert page.get(f"/api/{query}").status_code == 422


def test_what_the_view_adds_is_the_statistic_that_the_detector_judges() -> None:
    window = {"window_end": 20, "mean": 1.0, "rate": 2.0, "p95": 3.0}
    judged = {kind: completed([], [window], 0, 30, kind)[0]["actual"] for kind in ("gauge", "counter", "latency")}
    assert judged == {"gauge": 1.0, "counter": 2.0, "latency": 3.0}
    assert completed([], [window], 21, 30, "gauge") == []
    assert completed([], [window | {"actual": 9.0}], 0, 30, "gauge")[0]["actual"] == 9.0
