"""What the console answers about one series and one machine, asked of a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

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

KINDS = ("gauge", "counter", "latency")
BAND = {"typical": 8.0, "lower": 2.0, "upper": 14.0, "kind": "normal"}
QUIET = {
    "host.name": MACHINE,
    "metric": "quiet",
    "@timestamp": END - 900_000,
    "regime": 1,
    "regimes": [3.0, 8.0],
    **BAND,
}


class Known:
    """Beliefs about the series `quiet` of `MACHINE`, and cpu; `new` has just begun."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def series(self, entity: str, metric: str) -> dict[str, Any]:
        found = next((each for each in self.machine(entity, 9) if each["metric"] == metric), None)
        return {"age": None, **(found or {"state": None, "windows": [], "needed": 8})}

    def machine(self, entity: str, most: int) -> list[dict[str, Any]]:
        if entity != MACHINE:
            return []
        windows = [
            {"window_end": END - (9 - i) * WINDOW, "mean": float(i), "metric_kind": "gauge", **BAND} for i in range(10)
        ]
        new = [{"window_end": END - i * WINDOW, "mean": 5e9, "rate": 7.0, "metric_kind": "counter"} for i in (1, 0)]
        said: dict[str, Any] = {"host.name": MACHINE, "@timestamp": END, "kind": "normal"}
        disk = said | {"metric": "disk", "incident.state": "open", "since": END - 60_000}
        return [
            {"metric": "disk", "state": disk, "windows": [], "needed": 8},
            {"metric": "new", "state": None, "windows": new, "needed": 8},
            {"metric": "quiet", "state": QUIET, "windows": windows, "needed": 8},
        ]

    def machines(self, most: int) -> list[str]:
        return ["new-1", MACHINE]

    def full(self, most: int) -> list[dict[str, Any]]:
        return []

    def site(self) -> dict[str, Any]:
        learning = [{"name": "new-1", "windows": 5, "needed": 8}]
        return {"machines": 28, "learning": learning, "learning_count": 1, "last": END + 20_000}


class Away(Known):
    """Nobody to ask."""

    def machine(self, entity: str, most: int) -> list[dict[str, Any]]:
        raise NewnormalError("VIEW_UNREACHABLE", "nobody answers", "view")

    def machines(self, most: int) -> list[str]:
        raise NewnormalError("VIEW_UNREACHABLE", "nobody answers", "view")

    def site(self) -> dict[str, Any]:
        raise NewnormalError("VIEW_UNREACHABLE", "nobody answers", "view")


@pytest.fixture(scope="module")
def store(endpoints: Endpoints) -> Iterator[Store]:
    with stored_site(endpoints.elasticsearch_url, MACHINE_NOVELTIES, MACHINE_INCIDENTS) as found:
        yield found


def asked(store: Store, ask: Any = None, **query: Any) -> dict[str, Any]:
    page = TestClient(create_app(store, beliefs=ask, zone="Europe/Berlin"), base_url="http://localhost")
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
    (day,) = found["earlier"]
    assert (day["days"], tuple(day["span"])) == (1, (span[0] - DAY, span[1] - DAY))
    assert pairs(day["series"]) == stored("cpu", span[0] - DAY, span[1] - DAY)
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
    found = asked(store, Known(), metric="quiet")
    assert pairs(found["series"]) == [(END - (9 - i) * WINDOW, float(i)) for i in range(10)]
    assert found["known"]
    assert found["view"] == {"state": QUIET, "age": None, "missing": "", "windows": 10, "needed": 8}
    assert {(point["lower"], point["upper"]) for point in found["series"]} == {(2.0, 14.0)}
    assert tuple(found["axis"]) == (END - 9 * WINDOW, END), "the axis begins with the first window"
    assert found["earlier"] == [], "there are no earlier days"
    new = asked(store, Known(), metric="new")
    assert (pairs(new["series"])[-1], new["metric_kind"]) == ((END, 7.0), "counter")
    assert (new["view"]["windows"], new["view"]["needed"]) == (2, 8)
    mixed = asked(store, Known())
    assert pairs(mixed["series"]) == stored("cpu", END - 3_600_000, END), "what is stored is not replaced"


@pytest.mark.servers
def test_without_a_state_view_the_page_has_what_elasticsearch_has_and_the_reason(store: Store) -> None:
    for ask, reason in ((None, "this console does not ask a state view"), (Away(), "VIEW_UNREACHABLE")):
        found = asked(store, ask)
        assert found["view"] == {"state": None, "age": None, "missing": reason, "windows": 0, "needed": 0}
        assert len(found["series"]) == LENGTH
    assert not asked(store, Away(), metric="no-such")["known"]


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


@pytest.mark.servers
def test_a_machine_page_has_quiet_and_new_series_with_value_and_band_and_what_goes_on_comes_first(store: Store) -> None:
    page = TestClient(create_app(store, beliefs=Known()), base_url="http://localhost")
    found = page.get("/api/machine", params={"name": MACHINE}).json()
    rows = {each["metric"]: each for each in found["series"]}
    assert [each["metric"] for each in found["series"]] == ["disk", "cpu", "logs", "fan", "new", "quiet"]
    assert rows["disk"]["open_since"] == END - 60_000, "its last belief is an open incident"
    assert (rows["quiet"]["actual"], rows["quiet"]["lower"], rows["quiet"]["upper"]) == (9.0, 2.0, 14.0)
    assert (rows["new"]["kind"], rows["new"]["windows"], rows["new"]["needed"]) == ("learning", 2, 8)
    assert (rows["new"]["actual"], rows["new"]["metric_kind"]) == (7.0, "counter"), (
        "what is judged of a counter: its rate"
    )
    assert found["missing"] == ""
    windows = [each.window_end for each in MACHINE_NOVELTIES if each.entity == MACHINE and each.window_end > END - DAY]
    assert tuple(found["span"]) == (min(windows), END), "the small plots begin with the first window of the machine"


@pytest.mark.servers
def test_the_site_says_how_many_machines_report_and_which_are_learned_and_until_when_there_are_data(
    store: Store,
) -> None:
    page = TestClient(create_app(store, beliefs=Known()), base_url="http://localhost")
    site = page.get("/api/site").json()
    assert (site["machines"], site["last"], site["missing"]) == (28, END + 20_000, "")
    assert site["learning"] == [{"name": "new-1", "windows": 5, "needed": 8}]
    assert "new-1" in page.get("/api/entities").json()["entities"]
    alone = TestClient(create_app(store, beliefs=Away()), base_url="http://localhost").get("/api/site").json()
    assert (alone["machines"], alone["last"], alone["missing"]) == (0, END, "VIEW_UNREACHABLE"), "the newest stored one"


def test_what_the_view_adds_is_the_statistic_that_the_detector_judges() -> None:
    window = {"window_end": 20, "mean": 1.0, "rate": 2.0, "p95": 3.0}
    judged = {kind: completed([], [window | {"metric_kind": kind}], 0, 30)[0]["actual"] for kind in KINDS}
    assert judged == {"gauge": 1.0, "counter": 2.0, "latency": 3.0}
    assert completed([], [window], 21, 30) == []
    assert completed([], [window | {"actual": 9.0}], 0, 30)[0]["actual"] == 9.0
    total = {"window_end": 20, "mean": 5e9, "metric_kind": "counter"}
    assert completed([], [total], 0, 30)[0]["actual"] is None, "the first window of a counter has no rate yet"
