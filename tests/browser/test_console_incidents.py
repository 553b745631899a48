"""Incidents in the console, in a real browser on a real Elasticsearch: from the overview to the plot of a series."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboards.console import create_app
from pipelines.serving.server import WebServer, serve
from tests.dashboards.console_documents import HOSTILE, stored_site

pytestmark = [pytest.mark.servers, pytest.mark.browser]


@pytest.fixture(scope="module")
def console(endpoints: Any) -> Iterator[WebServer]:
    with stored_site(endpoints.elasticsearch_url) as store:
        server = serve(create_app(store), port=0)
        yield server
        server.stop()


@pytest.fixture(params=[(1440, 860, "light"), (1440, 860, "dark"), (390, 844, "light")], ids=["light", "dark", "phone"])
def page(browser: Browser, console: WebServer, request: pytest.FixtureRequest) -> Iterator[Page]:
    width, height, colours = request.param
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(console.url)
    expect(page.locator("#incidents .card").first).to_be_visible()
    yield page
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is not wider than the screen"
    if folder := os.environ.get("NEWNORMAL_SCREENSHOTS"):
        name = f"{request.function.__name__.removeprefix('test_')[:32]}-{request.node.callspec.id}"
        page.screenshot(path=str(Path(folder) / f"{name}.png"))
    page.close()
    assert wrong == []


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
