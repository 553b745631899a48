"""Clicks of an operator in a real browser: what is sent, and that the page waits for the answer of the pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser, Page, expect

from dashboards.console import Store, create_app
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Incident, Novelty
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import PHONE, WIDE, opened
from tests.dashboards.console_documents import END, INCIDENTS, ONSET, WINDOW, novelty, stored_site

pytestmark = [pytest.mark.servers, pytest.mark.browser]


class Pipeline:
    """Takes what is said, and answers, when it is told to, as the sink of a real one does: by new documents."""

    def __init__(self, url: str, store: Store) -> None:
        self.url, self.store, self.said = url, store, list[Any]()
        self.rules, self.placements, self.labelled = list[Any](), list[Any](), list[Any]()

    def label(self, entity: str, metric: str, start: int, verdict: str, note: str) -> int:
        self.said.append((entity, metric, start, verdict, note))
        return END

    def labels(self, series: Sequence[tuple[str, str, int]], verdict: str, note: str) -> int:
        self.said.append((list(series), verdict))
        for entity, metric, start in series:
            on = {"host.name": entity, "metric": metric, "event.start": start, "event.created": END + len(self.said)}
            self.labelled.append({**on, "verdict": verdict})
        return END

    def acknowledge(self, incident: str, active: bool, by: str, note: str) -> None:
        if incident == "small":
            raise NewnormalError("KAFKA_UNREACHABLE", "no broker answers", "127.0.0.1:9", "a running broker")
        self.said.append((incident, active, by, note))

    def maintain(self, entity: str, minutes: int, note: str) -> tuple[str, int]:
        self.said.append((entity, minutes, note))
        return "maintenance", END + minutes * 60_000

    def in_force(self) -> dict[str, list[dict[str, Any]]]:
        return {"rules": self.rules, "labels": self.labelled, "placements": self.placements}

    def answers(self, record: Novelty | Incident) -> None:
        name = self.store._index + ("-incidents" if isinstance(record, Incident) else "")
        sink = Sink(SinkConfig(self.url, index=name, alias=name), type(record))
        assert sink.write([SinkDocument(record.to_json())]).indexed == 1
        sink.close()
        with Elasticsearch(self.url) as client:
            client.indices.refresh(index=f"{name}*")


@pytest.fixture
def site(endpoints: Any) -> Iterator[tuple[WebServer, Pipeline]]:
    with stored_site(endpoints.elasticsearch_url) as store:
        pipeline = Pipeline(endpoints.elasticsearch_url, store)
        server = serve(create_app(store, actions=pipeline), port=0)
        yield server, pipeline
        server.stop()


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def page(browser: Browser, site: tuple[WebServer, Pipeline], request: pytest.FixtureRequest) -> Iterator[Page]:
    with opened(browser, site[0].url, request, request.param, refusals=True) as page:
        page.locator("#incidents .card a", has_text="rack: 3 machines").click()
        expect(page.locator("#detail h2")).to_have_text("rack: 3 machines")
        yield page


def test_a_label_waits_for_the_detector_and_then_tells_its_verdict(
    page: Page, site: tuple[WebServer, Pipeline]
) -> None:
    page.locator("#detail summary", has_text="Say what single series were").click()
    row = page.locator(".label-row", has_text="vm-1 cpu")
    row.get_by_role("button", name="Expected").click()
    expect(row.locator(".outcome")).to_contain_text("Waiting for the detector")
    ((entity, metric, start, verdict, _),) = site[1].said
    assert (entity, metric, verdict) == ("vm-1", "cpu", "expected_change")
    assert start == END - 20 * WINDOW + WINDOW, "the onset of the novelty"
    closed = novelty("vm-1", "cpu", END + WINDOW, "new_normal", 5.0).model_copy(update={"incident_state": "closed"})
    site[1].answers(closed)
    expect(row.locator(".outcome")).to_contain_text("new normal, its incident is closed", timeout=15_000)


def test_a_label_at_the_incident_is_said_once_for_all_its_series_and_tells_of_how_many_the_detector_has_judged(
    page: Page, site: tuple[WebServer, Pipeline]
) -> None:
    detail = page.locator("#detail")
    assert detail.get_by_role("button", name="False alarm").count() == 1, "not one for each series"
    detail.get_by_role("button", name="False alarm").click()
    outcome = detail.locator(".outcome", has_text="False alarm")
    expect(outcome).to_contain_text("sent for 3 series")
    onsets = [("rack-7", "cpu", ONSET), ("vm-1", "cpu", ONSET + WINDOW), ("vm-2", "disk", ONSET + 2 * WINDOW)]
    assert site[1].said == [(onsets, "false_alarm")]
    for machine, metric in (("vm-1", "cpu"), ("vm-2", "disk")):
        site[1].answers(novelty(machine, metric, END + WINDOW, "normal", 5.0))
    expect(outcome).to_contain_text(re.compile("has judged [12] of its 3 series"), timeout=15_000)


def test_the_card_of_an_incident_takes_the_same_without_opening_it(
    page: Page, site: tuple[WebServer, Pipeline]
) -> None:
    page.evaluate("() => { location.hash = ''; }")
    card = page.locator("#incidents .card", has_text="again: 2 machines")
    card.get_by_role("button", name="Acknowledge").click()
    expect(card.locator(".outcome")).to_contain_text("Waiting for the incidents job")
    assert site[1].said == [("again", True, "", "")]
    card.locator("summary", has_text="Maintenance").click()
    expect(card.get_by_role("button", name="2 h")).to_be_visible()
    assert page.evaluate("location.hash") == "", "no button opens the incident"


def test_an_incident_is_acknowledged_by_keyboard_and_shows_it_when_the_job_has_answered(
    page: Page, site: tuple[WebServer, Pipeline]
) -> None:
    detail = page.locator("#detail")
    detail.get_by_label("Your name").fill("ann\u202e<b>")
    detail.get_by_role("button", name="Acknowledge").focus()
    page.keyboard.press("Enter")
    expect(detail.locator(".outcome", has_text="Waiting for the incidents job")).to_be_visible()
    assert site[1].said == [("rack", True, "ann\u202e<b>", "")]
    rack = next(each for each in INCIDENTS if each.id == "rack")
    taken = {"status": "acknowledged", "acknowledged_by": "ann\u202e<b>", "revision": 2, "updated": END + 1}
    site[1].answers(rack.model_copy(update=taken))
    expect(detail.get_by_role("button", name="Release")).to_be_visible(timeout=15_000)
    expect(detail.locator(".where bdi").first).to_have_text("acknowledged by ann\u202e<b>")
    page.reload()
    expect(detail.get_by_role("button", name="Release")).to_be_visible()


def test_a_maintenance_is_for_the_chosen_machine_and_shows_that_the_detector_respects_it(
    page: Page, site: tuple[WebServer, Pipeline]
) -> None:
    detail = page.locator("#detail")
    detail.locator("summary", has_text="Maintenance").click()
    detail.get_by_label("Machine", exact=True).select_option("vm-2")
    detail.get_by_role("button", name="2 h").click()
    outcome = detail.locator(".outcome", has_text="Maintenance until")
    expect(outcome).to_contain_text("Waiting for the detector")
    assert site[1].said == [("vm-2", 120, "")]
    silent = novelty("vm-2", "disk", END + WINDOW, "normal", 0.0).model_copy(update={"rules": ["maintenance"]})
    site[1].answers(silent)
    expect(detail.locator(".outcome", has_text="In maintenance for 2 h")).to_be_visible(timeout=15_000)


def test_what_could_not_be_sent_is_said_with_its_reason(page: Page) -> None:
    page.evaluate("() => { location.hash = '#incident/small'; }")
    detail = page.locator("#detail")
    expect(detail.locator("h2")).to_have_text("small: 1 machines")
    detail.get_by_role("button", name="Acknowledge").click()
    expect(detail.locator(".outcome", has_text="KAFKA_UNREACHABLE")).to_contain_text("accepted: a running broker")


def test_a_button_of_a_notification_leads_to_what_it_names_and_only_a_click_there_does_it(
    page: Page, site: tuple[WebServer, Pipeline]
) -> None:
    detail = page.locator("#detail")
    page.goto(f"{site[0].url}/#incident/rack/acknowledge")
    expect(detail.get_by_role("button", name="Acknowledge")).to_be_focused()
    assert site[1].said == []
    page.keyboard.press("Enter")
    expect(detail.locator(".outcome", has_text="Waiting for the incidents job")).to_be_visible()
    assert [each[:2] for each in site[1].said] == [("rack", True)]
    page.goto(f"{site[0].url}/#incident/rack/maintenance")
    expect(detail.get_by_role("button", name="2 h")).to_be_visible()
