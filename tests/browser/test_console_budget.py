"""The alarm budget on the page of the pipeline, in a real browser: what was promised, and what labels say of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from dashboards.console import Promises, create_app
from dashboards.status import JobStatus, PipelineStatus
from pipelines.contracts.records.incident import AffectedSeries
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import PHONE, opened
from tests.browser.test_console_actions import Pipeline
from tests.dashboards.console_documents import DAY, END, WINDOW, incident, stored_site

pytestmark = [pytest.mark.servers, pytest.mark.browser]

SERIES = 50
NIGHT = END - 3 * DAY
PAGES = "at most 2 a week promised (incidents.false_pages); in the last 28 days "
ALARMS = "at most 1 a series and month promised (detector.false_alarms); in the last 28 days "


def over(identity: str, start: int) -> Any:
    rows = [
        AffectedSeries(
            entity="web-1", metric=metric, kind="anomaly", since=start, reported=start + WINDOW, end=start + WINDOW,
            record_score=80, change="3 × the usual",
        )
        for metric in ("cpu", "net")
    ]  # fmt: skip
    end = {"end": start + WINDOW, "open_series": 0}
    return incident(identity, "resolved", 60, ["web-1"], start=start, series=rows, **end)


INCIDENTS = [over("long ago", END - 40 * DAY), over("night", NIGHT), over("before", NIGHT - 600_000)]


def status() -> dict[str, Any]:
    return PipelineStatus(END, (JobStatus("detector", 9, 9, 1.0, lag=0, watermark=END, keys=SERIES),)).to_dict()


@pytest.fixture(scope="module")
def console(endpoints: Any) -> Iterator[WebServer]:
    with stored_site(endpoints.elasticsearch_url, [], INCIDENTS) as store:
        pipeline = Pipeline(endpoints.elasticsearch_url, store)
        server = serve(create_app(store, status, actions=pipeline, promises=Promises(2.0, 1.0)), port=0)
        yield server
        server.stop()


def fact(page: Page, name: str) -> Locator:
    return page.locator("#detail .facts dt", has_text=name).locator("+ dd")


def labelled(page: Page, button: str) -> None:
    page.evaluate("() => { location.hash = '#incident/night'; }")
    page.locator("#detail").get_by_role("button", name=button, exact=True).first.click()
    expect(page.locator("#detail .outcome", has_text="sent for 2 series")).to_be_visible()
    page.evaluate("() => { location.hash = '#health'; }")


def test_the_budget_says_what_was_promised_and_what_labels_say_and_follows_each_label_on_an_incident_that_is_over(
    browser: Browser, console: WebServer, request: pytest.FixtureRequest
) -> None:
    with opened(browser, f"{console.url}/#health", request, PHONE) as page:
        nobody = "none labelled yet: nothing says which were false"
        expect(fact(page, "false pages")).to_have_text(f"{PAGES}2 incidents were written, {nobody}")
        expect(fact(page, "false alarms")).to_have_text(f"{ALARMS}{nobody}")
        labelled(page, "False alarm")
        a_week, a_month = 1 / 4, 2 / SERIES / (28 / 30)
        assert (f"{a_week:.2f}", f"{a_month:.1g}") == ("0.25", "0.04")
        said = "2 incidents were written, 1 of them labelled a false alarm: 0.3 a week; 1 has no label"
        expect(fact(page, "false pages")).to_have_text(PAGES + said)
        said = f"2 labelled a false alarm, on 2 of {SERIES} series: 0.04 a series and month"
        expect(fact(page, "false alarms")).to_have_text(ALARMS + said)
        labelled(page, "True")  # she has changed her mind
        said = "2 incidents were written, none of them labelled a false alarm: 0 a week; 1 has no label"
        expect(fact(page, "false pages")).to_have_text(PAGES + said)
        expect(fact(page, "false alarms")).to_have_text(f"{ALARMS}none of the 2 that are labelled was false")
