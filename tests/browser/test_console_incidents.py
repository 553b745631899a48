"""Incidents in the console, in a real browser on a real Elasticsearch: from the overview to the plot of a series."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboards.console import create_app
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import PHONE, WIDE, opened
from tests.dashboards.console_documents import HOSTILE, stored_site

pytestmark = [pytest.mark.servers, pytest.mark.browser]


@pytest.fixture(scope="module")
def console(endpoints: Any) -> Iterator[WebServer]:
    with stored_site(endpoints.elasticsearch_url) as store:
        server = serve(create_app(store), port=0)
        yield server
        server.stop()


@pytest.fixture(params=[(WIDE, "light"), (WIDE, "dark"), (PHONE, "light")], ids=["light", "dark", "phone"])
def page(browser: Browser, console: WebServer, request: pytest.FixtureRequest) -> Iterator[Page]:
    size, colours = request.param
    with opened(browser, console.url, request, size, color_scheme=colours) as page:
        expect(page.locator("#incidents .card").first).to_be_visible()
        yield page


def test_open_incidents_stand_first_the_most_severe_on_top(page: Page) -> None:
    expect(page.locator("#incidents h2")).to_have_text("Open incidents (4)")
    cards = page.locator("#incidents > .cards .card")
    expect(cards).to_have_count(4)
    expect(cards.first).to_contain_text("critical")
    expect(cards.first).to_contain_text("rack: 3 machines")
    expect(cards.nth(1)).to_contain_text("reopened 2 times")
    top, table = cards.first.bounding_box(), page.locator("#list").bounding_box()
    assert top is not None
    assert table is not None
    assert top["y"] + top["height"] < min(table["y"], page.viewport_size["height"] / 2)  # type: ignore[index]


def test_two_clicks_lead_to_the_plot_of_a_series_and_back_to_its_incident(page: Page) -> None:
    page.locator("#incidents .card a", has_text="rack: 3 machines").click()
    detail = page.locator("#detail")
    expect(detail.locator("h2")).to_have_text("rack: 3 machines")
    expect(detail.locator(".causes li").first).to_contain_text("rack-7")
    expect(detail.locator(".begun")).to_contain_text("At none of its machines: 25 %")
    changed = detail.locator("h3", has_text="What changed in the logs").locator("+ .causes li")
    expect(changed).to_have_text(re.compile("vm-1 and 1 more machine · from .*release 2.4 was started"))
    done = detail.locator("h3", has_text="What was done before").locator("+ .causes li")
    expect(done).to_have_text(re.compile("vm-1 · feature flag · .*new checkout on"))
    expect(detail.locator(".multiples .machine a")).to_have_text(["rack-7", "vm-1", "vm-2"])
    expect(detail.locator(".multiples .machine .soft")).to_have_text(["first", "+10 s", "+20 s"])
    rows = detail.locator(".multiples .row")
    expect(rows.locator(".name")).to_have_text(["cpu", "cpu", "disk"])
    expect(rows.nth(1).locator(".band .done title")).to_have_text("feature flag: new checkout on")
    expect(rows.nth(2).locator(".band .done")).to_have_count(0)
    expect(rows.nth(2).locator(".change")).to_have_text("1.8 × the usual")
    expect(rows.nth(2).locator(".values")).to_have_text("9, usual: 4 to 6")
    expect(rows.nth(2).locator(".band .actual")).to_have_attribute("d", re.compile("^M"))
    expect(rows.nth(2).locator(".band .expected").first).to_have_attribute("d", re.compile("Z$"))
    expect(detail.locator("h2")).to_be_in_viewport()
    rows.nth(2).click()
    expect(detail.locator(".canvas[data-marked] canvas")).to_be_in_viewport()
    expect(detail.locator("h2")).to_contain_text("vm-2")
    page.go_back()
    expect(detail.locator("h2")).to_have_text("rack: 3 machines")


def test_the_keyboard_opens_an_incident_and_its_link_opens_it_elsewhere(page: Page) -> None:
    page.locator("#incidents .card a", has_text="again: 2 machines").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#detail h2")).to_have_text("again: 2 machines")
    link = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#detail h2")).to_have_text("again: 2 machines")
    expect(page.locator(".card a[aria-current]")).to_contain_text("again: 2 machines")


def test_hostile_names_are_text_and_a_long_one_does_not_widen_the_page(page: Page) -> None:
    page.locator("#incidents .card a", has_text="onerror").click()
    expect(page.locator("#detail h2")).to_have_text(HOSTILE)
    expect(page.locator("#detail .multiples .row")).to_have_count(1)
    expect(page.locator("#detail h3", has_text="What changed in the logs")).to_be_visible()
    assert page.locator("main img, main script").count() == 0
