"""What the console answers about incidents, asked of a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Store, create_app
from deploy.embedded.endpoints import Endpoints
from tests.dashboards.console_documents import (
    AT,
    END,
    LENGTH,
    MACHINE,
    MACHINE_NOVELTIES,
    ONSET,
    WINDOW,
    incident,
    stored_site,
)


@pytest.fixture(scope="module")
def site(endpoints: Endpoints) -> Iterator[TestClient]:
    with stored_site(endpoints.elasticsearch_url) as store:
        yield TestClient(create_app(store), base_url="http://localhost")


@pytest.mark.servers
def test_open_incidents_come_with_the_most_severe_first_and_those_resolved_with_the_newest_end_first(
    site: TestClient,
) -> None:
    found = site.get("/api/incidents").json()
    assert [each["event.id"] for each in found["open"]] == ["rack", "again", "ours", "small"]
    assert [each["event.id"] for each in found["resolved"]] == ["past", "older"]


@pytest.mark.servers
def test_an_incident_lists_the_series_that_are_novel_in_it_in_the_order_of_their_onsets(site: TestClient) -> None:
    series = site.get("/api/incident", params={"id": "rack"}).json()["series"]
    shown = [(each["host.name"], each["metric"], each["@timestamp"] - ONSET, each["highest"]) for each in series]
    assert shown == [
        ("rack-7", "cpu", WINDOW, 88.0), ("vm-1", "cpu", 2 * WINDOW, 77.0), ("vm-2", "disk", 3 * WINDOW, 93.0),
    ]  # fmt: skip
    plotted = site.get("/api/novelty", params={"id": series[2]["_id"]}).json()["novelty"]
    assert (plotted["host.name"], plotted["metric"]) == ("vm-2", "disk"), "the list leads to the plot of the series"


@pytest.mark.servers
def test_each_series_of_an_incident_has_its_values_for_a_small_plot_also_from_before_the_incident(
    endpoints: Endpoints,
) -> None:
    nine = incident("nine", "open", 95, [MACHINE], start=END - (LENGTH - AT) * WINDOW)
    with stored_site(endpoints.elasticsearch_url, MACHINE_NOVELTIES, [nine]) as store:
        client = TestClient(create_app(store), base_url="http://localhost")
        found = client.get("/api/incident", params={"id": "nine"}).json()
        listed = {each["metric"]: each for each in found["series"] if each["host.name"] == MACHINE}
        begin, end = found["span"]
        step = (end - begin) // found["sparks"]
        stored = [(END - (LENGTH - 1 - i) * WINDOW, float(i)) for i in range(LENGTH)]
        by_span: dict[int, list[float]] = {}
        for at, value in stored:
            if begin <= at <= end:
                by_span.setdefault((at - begin) // step, []).append(value)
        assert begin < found["incident"]["event.start"], "what it was like before is seen, too"
        assert dict(listed["cpu"]["spark"]) == pytest.approx({at: sum(v) / len(v) for at, v in by_span.items()})
        assert len(by_span) > 1


@pytest.mark.servers
def test_a_machine_of_which_only_all_metrics_together_are_novel_is_listed(site: TestClient) -> None:
    series = site.get("/api/incident", params={"id": "older"}).json()["series"]
    assert [(each["host.name"], each["metric"]) for each in series] == [("web-8", "_machine")]


@pytest.mark.servers
def test_an_incident_that_is_not_there_is_said_to_be_so(site: TestClient) -> None:
    reply = site.get("/api/incident", params={"id": "none"})
    assert (reply.status_code, reply.json()) == (404, {"detail": "there is no such incident"})


@pytest.mark.servers
def test_a_site_without_any_incident_yet_has_none(endpoints: Endpoints) -> None:
    store = Store(endpoints.elasticsearch_url, "no-such-novelties", "no-such-incidents")
    found = TestClient(create_app(store), base_url="http://localhost").get("/api/incidents").json()
    assert (found["open"], found["resolved"]) == ([], [])
    store.close()


@pytest.mark.parametrize(
    "query", ["incidents?limit=0", "incidents?limit=501", "incident", "incident?id=", "incident?id=" + "i" * 513]
)
def test_a_question_about_incidents_without_bounds_is_refused_before_elasticsearch_is_asked(query: str) -> None:
    page = TestClient(create_app(Store("http://127.0.0.1:9")), base_url="http://localhost")
    assert page.get(f"/api/{query}").status_code == 422


def test_an_elasticsearch_that_does_not_answer_is_named_as_the_reason() -> None:
    page = TestClient(create_app(Store("http://127.0.0.1:9")), base_url="http://localhost")
    for path in ("/api/incidents", "/api/incident?id=a"):
        reply = page.get(path)
        assert (reply.status_code, reply.json()["code"]) == (503, "ELASTICSEARCH_UNREACHABLE")
