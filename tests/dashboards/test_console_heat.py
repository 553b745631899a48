"""The strips of machines over time and the small plots of series, recomputed from the documents themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from dashboards.console import Store, create_app
from dashboards.console.heat_store import CELLS
from deploy.embedded.endpoints import Endpoints
from pipelines.contracts.records import Novelty
from tests.dashboards.console_documents import END, HOSTILE, WINDOW, novelty, stored_site

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


@pytest.mark.parametrize("hours", [1, 6, 24])
def test_a_cell_is_the_highest_score_of_the_alarms_in_its_span(store: Store, hours: int) -> None:
    found = store.heat(END + 1, hours)
    assert found["step"] == hours * HOUR // CELLS
    assert found["start"] % found["step"] == 0
    assert found["start"] + CELLS * found["step"] > END >= found["start"]
    wanted: dict[str, dict[int, float]] = {}
    for each in NOVELTIES:
        at = (each.window_end - found["start"]) // found["step"]
        if each.kind in ALARMS and 0 <= at < CELLS:
            cells = wanted.setdefault(each.entity, {})
            cells[at] = max(cells.get(at, 0.0), each.record_score)
    assert {each["name"]: dict(each["cells"]) for each in found["machines"]} == wanted
    worst = [max(score for _, score in each["cells"]) for each in found["machines"]]
    assert worst == sorted(worst, reverse=True)
    assert found["count"] == len(wanted)


def test_the_small_plot_of_a_series_has_the_mean_of_each_span(store: Store) -> None:
    start = END - 24 * HOUR
    listed, _ = store.one_series.of_machine("web-1", start, END)
    step = 24 * HOUR // 48
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
    assert client.get("/api/heat").json()["machines"] == []
    assert [client.get(f"/api/heat?hours={hours}").status_code for hours in (0, 169)] == [422, 422]
