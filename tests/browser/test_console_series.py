"""The pages of a series and of a machine, in a real browser on a real Elasticsearch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboards.console import create_app
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import PHONE, WIDE, opened
from tests.dashboards.console_documents import (
    AT,
    END,
    LENGTH,
    MACHINE,
    MACHINE_INCIDENTS,
    MACHINE_NOVELTIES,
    WINDOW,
    stored_site,
)  # fmt: skip

pytestmark = [pytest.mark.servers, pytest.mark.browser]
PAGE_BYTES = 500_000
LOADED = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter(it => !it.name.includes("/api/")).reduce((sum, it) => sum + it.encodedBodySize, 0)"""
SPAN = (LENGTH - 1) * WINDOW
"""What is stored of the last hour: the time axis begins with its first window."""
SERIES = f"#series/{quote(MACHINE, safe='')}/cpu"


@pytest.fixture(scope="module")
def console(endpoints: Any) -> Iterator[WebServer]:
    with stored_site(endpoints.elasticsearch_url, MACHINE_NOVELTIES, MACHINE_INCIDENTS) as store:
        server = serve(create_app(store, zone="Asia/Kolkata"), port=0)
        yield server
        server.stop()


@pytest.fixture(params=[(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"])
def page(browser: Browser, console: WebServer, request: pytest.FixtureRequest) -> Iterator[Page]:
    size, colours = request.param
    with opened(browser, console.url, request, size, color_scheme=colours) as page:
        expect(page.locator("#incidents .card").first).to_be_visible()
        yield page
        assert 50_000 < page.evaluate(LOADED) < PAGE_BYTES


def test_three_clicks_lead_from_the_overview_to_a_series_and_one_to_its_machine(page: Page) -> None:
    page.locator("#incidents .card a", has_text="nine: 2 machines").click()
    page.locator("#detail .multiples .machine a").first.click()
    detail = page.locator("#detail")
    expect(detail.locator("h2")).to_have_text(MACHINE)
    names = detail.locator(".of-series .name")
    expect(names).to_have_text(["disk", "cpu", "logs", "fan"])
    detail.locator(".of-series a", has_text="cpu").click()
    expect(detail.locator("h2")).to_have_text(f"cpu of {MACHINE}")
    expect(detail.locator(".canvas").first.locator("canvas")).to_be_visible()
    expect(detail.locator(".earlier")).to_have_count(2)
    expect(detail.locator(".earlier canvas")).to_have_count(2)
    expect(detail.locator(".earlier", has_text="A week before")).to_have_count(0)
    expect(detail.locator(".belief")).to_contain_text("It is not known here (this console does not ask a state view)")
    detail.locator("h2 a").click()
    expect(detail.locator("h2")).to_have_text(MACHINE)


def test_the_plot_tells_the_value_at_a_time_by_pointer_and_by_keyboard(page: Page) -> None:
    page.evaluate("hash => { location.hash = hash; }", SERIES)
    plot, legend = page.locator("#detail .canvas").first, page.locator("#detail .legend").first
    over = plot.locator(".u-over")
    expect(over).to_be_visible()
    box = over.bounding_box()
    assert box is not None
    end = END - (LENGTH - 1 - AT) * WINDOW
    share = 1 - (END - end) / SPAN
    over.hover(position={"x": share * box["width"], "y": box["height"] / 2})
    shown = legend.inner_text()
    number = re.search(r"actual (\d+)", shown)
    assert number is not None
    assert abs(int(number[1]) - AT) <= SPAN / box["width"] / WINDOW, "the window under the pointer"
    page.mouse.move(0, 0)
    plot.focus()
    page.keyboard.press("ArrowLeft")
    expect(legend).to_contain_text(f"actual {LENGTH - 1}")
    page.keyboard.press("ArrowLeft")
    expect(legend).to_contain_text(f"actual {LENGTH - 2}")
    last = datetime.fromtimestamp((END - WINDOW) / 1000, UTC)
    expect(legend).to_contain_text(f"{last:%Y-%m-%d %H:%M:%S} UTC")
    expect(legend).to_contain_text(f"({last.astimezone(ZoneInfo('Asia/Kolkata')):%H:%M:%S}")


def test_it_zooms_and_resets_by_keyboard_and_by_button_and_nothing_below_moves(page: Page) -> None:
    page.evaluate("hash => { location.hash = hash; }", SERIES)
    plot = page.locator("#detail .canvas").first
    expect(plot).to_have_attribute("data-zoomed", "false")
    expect(plot.locator("canvas")).to_be_visible()
    below = page.locator("#detail h3").first
    before = below.evaluate("it => it.offsetTop")
    plot.focus()
    page.keyboard.press("+")
    expect(plot).to_have_attribute("data-zoomed", "true")
    page.keyboard.press("0")
    expect(plot).to_have_attribute("data-zoomed", "false")
    page.get_by_role("button", name="Zoom in").first.click()
    expect(plot).to_have_attribute("data-zoomed", "true")
    plot.locator(".u-over").dblclick()
    expect(plot).to_have_attribute("data-zoomed", "false")
    assert below.evaluate("it => it.offsetTop") == before


def test_a_machine_and_a_series_that_nobody_knows_say_what_to_do(page: Page) -> None:
    page.evaluate("() => { location.hash = '#machine/no%2Fbody'; }")
    expect(page.locator("#detail .unknown")).to_contain_text("See whether the name is right")
    page.evaluate("() => { location.hash = '#series/no%2Fbody/cpu'; }")
    expect(page.locator("#detail .unknown")).to_contain_text("Nothing is known of this series")


def test_a_row_of_the_overview_leads_to_its_machine_and_its_series(page: Page) -> None:
    row = page.locator("#rows tr", has_text="disk").first
    row.locator("a.to").first.click()
    expect(page.locator("#detail h2")).to_have_text(MACHINE)
    page.evaluate("() => { location.hash = ''; }")
    row.locator("a.to").nth(1).click()
    expect(page.locator("#detail h2")).to_have_text(f"disk of {MACHINE}")


def test_a_link_from_another_page_opens_a_series_of_long_ago(page: Page) -> None:
    page.evaluate("name => { location.hash = '#machine/' + encodeURIComponent(name); }", MACHINE)
    expect(page.locator("#detail h2")).to_have_text(MACHINE)
    page.evaluate("link => { location.hash = link; }", f"{SERIES}/1/{END - 3_600_000}")
    expect(page.locator("#detail h2")).to_have_text(f"cpu of {MACHINE}")
