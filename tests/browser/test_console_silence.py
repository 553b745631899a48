"""The incident that nothing is received any more, in the console: it is that of no machine and no series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboards.console import create_app
from pipelines.contracts.records import Silence
from pipelines.jobs.incidents.silent_inputs import silent
from pipelines.serving.server import serve
from tests.browser.pages import opened
from tests.dashboards.console_documents import NOVELTIES, ONSET, stored_site

pytestmark = [pytest.mark.servers, pytest.mark.browser]


@pytest.fixture
def page(browser: Browser, endpoints: Any, request: pytest.FixtureRequest) -> Iterator[Page]:
    silence = Silence(input="*", since=ONSET, noticed=ONSET + 300_000, time=ONSET + 300_000)
    (found,) = silent("default", [silence], [], {}, 2**60)
    incident = found.incident.model_copy(update={"revision": 1})
    with stored_site(endpoints.elasticsearch_url, NOVELTIES, [incident]) as store:
        server = serve(create_app(store), port=0)
        with opened(browser, server.url, request) as page:
            yield page
        server.stop()


def test_card_and_page_say_what_is_silent_and_count_no_machines_and_series(page: Page) -> None:
    card = page.locator("#incidents .card")
    expect(card).to_contain_text("nothing has been received since")
    expect(card.locator(".facts")).not_to_contain_text("machine")
    expect(card).not_to_contain_text("0 series")
    card.locator("a.open").click()
    detail = page.locator("#detail")
    expect(detail.locator("h2")).to_contain_text("nothing has been received since")
    expect(detail).to_contain_text("the last record came")
    for untrue in ("0 machines", "0 series", "None of its novelties", "like it before", "first series", "False alarm"):
        expect(detail).not_to_contain_text(untrue)
