"""What the console answers about incidents, asked of a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Store, create_app
from deploy.embedded.endpoints import Endpoints
from tests.dashboards import console_night
from tests.dashboards.console_documents import ONSET, WINDOW, stored_site


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
def test_an_incident_of_an_earlier_version_lists_the_series_that_are_novel_in_it_in_the_order_of_their_onsets(
    site: TestClient,
) -> None:
    series = site.get("/api/incident", params={"id": "rack"}).json()["series"]
    shown = [(each["entity"], each["metric"], each["since"] - ONSET, each["record_score"]) for each in series]
    assert shown == [("rack-7", "cpu", 0, 88), ("vm-1", "cpu", WINDOW, 77), ("vm-2", "disk", 2 * WINDOW, 93)]
    assert series[2]["change"] == "1.8 × the usual"
    assert series[2]["values"] == "9, usual: 4 to 6"
    plotted = site.get("/api/novelty", params={"id": series[2]["_id"]}).json()["novelty"]
    assert (plotted["host.name"], plotted["metric"]) == ("vm-2", "disk"), "the list leads to the plot of the series"


@pytest.fixture(scope="module")
def night(endpoints: Endpoints) -> Iterator[TestClient]:
    with stored_site(endpoints.elasticsearch_url, console_night.NOVELTIES, console_night.INCIDENTS) as store:
        yield TestClient(create_app(store, quiet=180_000), base_url="http://localhost")


@pytest.mark.servers
def test_an_incident_lists_its_series_as_the_incidents_job_has_written_them_the_silence_first(
    night: TestClient,
) -> None:
    found = night.get("/api/incident", params={"id": "silence"}).json()
    written = [each.model_dump(exclude_none=True) for each in console_night.SILENCED.series]
    named = [{name: each[name] for name in written[i]} for i, each in enumerate(found["series"])]
    assert named == written
    assert found["series"][0]["change"] == "sent nothing for 90 s"
    assert found["over"] == max(each["end"] for each in written), "it is over, though it is not resolved yet"
    assert found["quiet"] == 180_000


@pytest.mark.servers
def test_each_series_has_its_values_and_its_band_also_from_before_the_incident_and_all_have_one_axis(
    night: TestClient,
) -> None:
    found = night.get("/api/incident", params={"id": "surge"}).json()
    begin, end = found["span"]
    assert begin < found["incident"]["event.start"] < end <= found["now"]
    windows = [each for each in console_night.NOVELTIES if (each.entity, each.metric) == ("vm-00003", "cpu.util")]
    spans: dict[int, list[Any]] = {}
    for each in windows:
        if begin <= each.window_end <= end:
            spans.setdefault((each.window_end - begin) // found["step"], []).append(each)
    [cpu] = [each for each in found["series"] if (each["entity"], each["metric"]) == ("vm-00003", "cpu.util")]
    wanted = [
        [at, sum(w.actual for w in of) / len(of), min(w.lower for w in of), max(w.upper for w in of)]
        for at, of in sorted(spans.items())
    ]
    assert len(wanted) > 30
    assert [point[0] for point in cpu["plot"]] == [point[0] for point in wanted]
    for point, right in zip(cpu["plot"], wanted, strict=True):
        assert point[1:] == pytest.approx(right[1:], rel=1e-4)


@pytest.mark.servers
def test_an_open_incident_has_a_plot_of_its_strongest_series_that_has_values(night: TestClient) -> None:
    found = {each["event.id"]: each["plot"] for each in night.get("/api/incidents").json()["open"]}
    assert (found["surge"]["entity"], found["surge"]["metric"]) == ("vm-00003", "http.requests")
    assert (found["silence"]["entity"], found["silence"]["metric"]) == ("host-007", "load.1m"), "silence has no values"
    assert len(found["surge"]["points"]) > 30


@pytest.mark.servers
def test_earlier_incidents_on_the_same_machines_are_found_with_how_they_ended(night: TestClient) -> None:
    similar = night.get("/api/incident", params={"id": "surge"}).json()["similar"]
    assert similar[0]["event.id"] == "before"
    assert similar[0]["machines"] == ["host-001", "vm-00003"]
    assert (similar[0]["acknowledged_by"], similar[0]["note"]) == ("ben", "a newsletter went out")
    assert similar[0]["event.end"] - similar[0]["event.start"] == 180_000
    assert "surge" not in [each["event.id"] for each in similar]
    of_first = night.get("/api/incident", params={"id": "before"}).json()["similar"]
    assert of_first == [], "what came later is not before it"


@pytest.mark.servers
def test_the_answer_to_a_label_counts_the_series_that_were_judged_since(night: TestClient) -> None:
    ask = {"id": "surge", "after": console_night.END - WINDOW}
    found = night.get("/api/incident/answer", params=ask).json()
    assert (found["state"], found["of"], found["judged"], found["closed"]) == ("open", 6, 6, 0)
    later = night.get("/api/incident/answer", params=ask | {"after": console_night.END}).json()
    assert later["judged"] == 0


@pytest.mark.servers
def test_a_machine_of_which_only_all_metrics_together_are_novel_is_listed(site: TestClient) -> None:
    series = site.get("/api/incident", params={"id": "older"}).json()["series"]
    assert [(each["entity"], each["metric"]) for each in series] == [("web-8", "_machine")]


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
