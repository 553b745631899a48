"""The strips of machines over time and the small plots of series, recomputed from the documents themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Store, create_app
from dashboards.console.heat_store import CELLS
from dashboards.console.sparks import Sparks
from deploy.embedded.endpoints import Endpoints
from pipelines.contracts.records import Novelty
from tests.dashboards.console_documents import (
    END,
    HOSTILE,
    REPLICAS,
    WINDOW,
    WORKLOADS,
    novelty,
    stored_site,
)

HOUR = 3_600_000
KINDS = ("anomaly", "normal", "state_change", "recovered", "absence", "learning", "new_normal")
ALARMS = {"anomaly", "state_change", "absence", "new_normal"}
NOVELTIES = [
    novelty(name, metric, END - (7 * i + place) * 29 * WINDOW, KINDS[i % len(KINDS)], 40.0 + (i * 13 + place) % 60)
    for place, name in enumerate(("web-1", "db/2 ?#", HOSTILE))
    for metric in ("cpu", "disk")
    for i in range(40)
]

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def store(endpoints: Endpoints) -> Iterator[Store]:
    with stored_site(endpoints.elasticsearch_url, NOVELTIES, []) as found:
        yield found


FIRST, LAST = (at(each.window_end for each in NOVELTIES) for at in (min, max))


@pytest.mark.parametrize("minutes", [15, 60, 360, None])
def test_a_cell_is_the_highest_score_of_the_alarms_in_its_span(store: Store, minutes: int | None) -> None:
    found = store.heat.heat(END + 1, minutes and minutes * 60_000)
    start, end, step = found["start"], found["end"], found["step"]
    assert end == LAST, "it ends with the newest window that is known"
    assert start == max(FIRST, end - (minutes or 10**6) * 60_000) // step * step, "it begins with the first one"
    assert 1 < found["cells"] <= CELLS
    assert start + (found["cells"] - 1) * step <= end < start + found["cells"] * step
    wanted: dict[str, dict[int, float]] = {}
    overall: dict[int, float] = {}
    for each in NOVELTIES:
        if each.kind in ALARMS and each.window_end >= start:
            cells, at = wanted.setdefault(each.entity, {}), (each.window_end - start) // step
            cells[at] = max(cells.get(at, 0.0), each.record_score)
            overall[at] = max(overall.get(at, 0.0), each.record_score)
    assert {each["name"]: dict(each["cells"]) for each in found["lanes"]} == wanted
    assert dict(found["all"]) == overall, "the overall lane is the highest of all machines"
    assert found["count"] == len(wanted)


def test_machines_of_incidents_that_go_on_stand_first_and_then_those_with_the_latest_alarm(store: Store) -> None:
    latest = {each.entity: 0 for each in NOVELTIES}
    for each in NOVELTIES:
        if each.kind in ALARMS:
            latest[each.entity] = max(latest[each.entity], each.window_end)
    by_latest = sorted(latest, key=lambda name: -latest[name])
    last = by_latest[-1]
    assert [each["name"] for each in store.heat.heat(END + 1)["lanes"]] == by_latest
    found = store.heat.heat(END + 1, ongoing=[(last, None)])["lanes"]
    assert [each["name"] for each in found] == [last, *by_latest[:-1]]
    assert [each["ongoing"] for each in found] == [True, False, False]


def test_two_hundred_pods_of_twelve_workloads_have_twelve_lanes_and_a_workload_has_those_of_its_replicas(
    endpoints: Endpoints,
) -> None:
    alone = [novelty("db-1", "cpu", END - WINDOW, "anomaly", 60.0)]
    with stored_site(endpoints.elasticsearch_url, [*REPLICAS, *alone], []) as store:
        pod = REPLICAS[7]
        found = store.heat.heat(END, ongoing=[(pod.entity, pod.workload)])
        lanes = {each["name"]: each for each in found["lanes"]}
        assert (len(lanes), found["count"]) == (WORKLOADS + 1, WORKLOADS + 1)
        assert found["lanes"][0]["name"] == pod.workload == "shop/app07", "what goes on stands first"
        assert [name for name, each in lanes.items() if each["ongoing"]] == ["shop/app07"]
        for name in sorted({each.workload or "" for each in REPLICAS}):
            mine = [each for each in REPLICAS if each.workload == name]
            wanted: dict[int, float] = {}
            for each in mine:
                at = (each.window_end - found["start"]) // found["step"]
                wanted[at] = max(wanted.get(at, 0.0), each.record_score)
            assert (lanes[name]["replicas"], dict(lanes[name]["cells"])) == (len(mine), wanted)
        assert lanes["db-1"]["replicas"] is None
        opened = store.heat.heat(END, workload="shop/app07", ongoing=[(pod.entity, pod.workload)])
        mine = {each.entity for each in REPLICAS if each.workload == "shop/app07"}
        assert {each["name"] for each in opened["lanes"]} == mine and opened["count"] == len(mine)
        assert [each["name"] for each in opened["lanes"] if each["ongoing"]] == [pod.entity]


def test_the_time_ends_with_what_the_pipeline_has_judged_and_never_in_the_future(store: Store) -> None:
    later = LAST + 300_000
    assert store.heat.heat(later + HOUR, judged_to=later)["end"] == later, "calm windows are not stored, but judged"
    assert store.heat.heat(LAST + 1_000, judged_to=later)["end"] == LAST + 1_000


def test_the_small_plot_of_a_series_has_the_mean_of_each_span(store: Store) -> None:
    start = END - 24 * HOUR
    listed, _ = store.one_series.of_machine("web-1", start, END, Sparks(start, END))
    step = 24 * HOUR // 48 + 1  # the end belongs to the last of 48 spans
    of: list[Novelty] = [each for each in NOVELTIES if (each.entity, each.metric) == ("web-1", "cpu")]
    spans: dict[int, list[float]] = {}
    for each in of:
        if each.window_end >= start and each.actual is not None:
            spans.setdefault((each.window_end - start) // step, []).append(each.actual)
    [cpu] = [each for each in listed if each["metric"] == "cpu"]
    assert dict(cpu["spark"]) == {at: pytest.approx(sum(values) / len(values)) for at, values in spans.items()}
    assert spans


def test_the_time_is_bounded_and_an_index_without_documents_has_no_machine(endpoints: Endpoints) -> None:
    client = TestClient(create_app(Store(endpoints.elasticsearch_url, "nothing-here")), "http://localhost")
    assert client.get("/api/heat").json()["lanes"] == []
    assert [client.get(f"/api/heat?minutes={minutes}").status_code for minutes in (0, 43_201)] == [422, 422]
