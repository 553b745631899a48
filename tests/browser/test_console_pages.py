"""Pages for versions and health, what refreshes by itself, the keyboard, the token, and what a visit weighs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboards.console import Access, Promises, Store, create_app
from dashboards.status import JobStatus, PipelineStatus
from engine.spec.errors import NewnormalError
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import PHONE, WIDE, opened, picture
from tests.browser.test_console import HOSTILE
from tests.dashboards.console_documents import END, WINDOW, novelty, stored_site

pytestmark = [pytest.mark.servers, pytest.mark.browser]

MOST_BYTES = 500_000
SHIFTS = """window.shifted = 0; new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.shifted += each.value;
}).observe({ type: "layout-shift", buffered: true });"""
"""Sums up by how much what was on the screen has moved: 0.1 is what Google's Web Vitals call good."""

TOKEN = "a-token-that-is-long-enough"


def status() -> dict[str, Any]:
    jobs = (
        JobStatus("normalizer", 100, 100, 50.0, 0, 3, 12, END, rate_out=50.0, completed=END),
        JobStatus("detector", 100, 100, 10.0, lag=0, last_error=f"ValueError: {HOSTILE}", completed=END),
    )
    return PipelineStatus(END, jobs, problems=("Elasticsearch does not answer",)).to_dict()


class Versions:
    """Two versions, one with a hostile setting; `tests.pipelines.cli.test_compare` has what really compares."""

    def listed(self) -> list[dict[str, Any]]:
        first = {"name": "v1", "base": None, "settings": {}, "created": 0, "end": None, "ended": False, "shown": True}
        return [first, first | {"name": "v2", "base": "v1", "settings": {"a": HOSTILE}, "created": END, "shown": False}]

    def compared(self, first: str, second: str) -> dict[str, Any]:
        if second == "v9":
            raise NewnormalError("VERSION_UNKNOWN", "there is no version v9", "versions", "v1, v2")
        points = [{"@timestamp": END + i * WINDOW, "actual": float(i), "typical": 1.0, "lower": 0.0, "upper": 2.0,
                   "record_score": 80.0, "kind": "anomaly" if i == 5 else "normal"} for i in range(10)]  # fmt: skip
        sides = [{"version": name, "reason": f"{name}: {HOSTILE}", "points": points} for name in (first, second)]
        alarm = {"entity": HOSTILE, "metric": "cpu", "start": END, "end": END + WINDOW, "outcome": "gone",
                 "kind0": "anomaly", "kind1": None, "highest0": 80.0, "highest1": 12.0}  # fmt: skip
        difference = alarm | {"span": [END, END + 10 * WINDOW], "versions": sides}
        return {
            "versions": [first, second], "at": END,
            "incidents": {"summary": "v1: 6 incidents, 9 messages; v2: 4 incidents (the largest of 24 machines).",
                          "rows": [["incidents", "6", "4"]], "only": [f"Only v2: {HOSTILE}"]},
            "headline": "v1 and v2 agree on 96.67 % of 60 windows.",
            "sentences": [HOSTILE], "outcomes": ["new", "gone", "changed", "moved", "same"],
            "tables": [{"by": "machine", "rows": [[HOSTILE, 1, 0, 0, 1, 0, 0, 0]], "more": 2}],
            "quality": {"rows": [["recall", "0.5", "1"]], "notes": ["A note."]}, "differences": [difference],
        }  # fmt: skip


@pytest.fixture(scope="module")
def site(endpoints: Any) -> Iterator[tuple[WebServer, Store]]:
    with stored_site(endpoints.elasticsearch_url) as store:
        server = serve(create_app(store, status, versions=Versions(), promises=Promises(2.0, 1.0)), port=0)
        yield server, store
        server.stop()


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def page(browser: Browser, site: tuple[WebServer, Store], request: pytest.FixtureRequest) -> Iterator[Page]:
    with opened(browser, site[0].url, request, request.param) as page:
        expect(page.locator("#rows tr").first).to_be_visible()
        yield page


def test_two_versions_are_compared_by_a_click_and_a_difference_shows_both_series(page: Page) -> None:
    page.get_by_role("link", name="Versions").click()
    detail = page.locator("#detail")
    expect(detail.locator("tbody tr")).to_have_count(2)
    expect(detail.locator("tbody tr").first).to_contain_text("shown to readers")
    expect(page.locator("#rows")).not_to_be_visible()
    detail.get_by_role("link", name="Compare").click()
    first_words = "v1: 6 incidents, 9 messages; v2: 4 incidents (the largest of 24 machines)."
    expect(detail.locator(".lead")).to_have_text(first_words, timeout=60_000)
    expect(detail.locator(".headline")).to_have_text("v1 and v2 agree on 96.67 % of 60 windows.")
    expect(detail).to_contain_text("only in the first")
    expect(detail.locator("tbody tr", has_text=HOSTILE)).to_contain_text("1")
    expect(detail.locator(".difference canvas")).to_have_count(0)
    detail.locator(".difference summary").click()
    expect(detail.locator(".difference canvas")).to_have_count(2)
    picture(page, "comparison")
    page.go_back()
    expect(detail.get_by_role("link", name="Compare")).to_be_visible()


def test_the_health_page_tells_what_is_wrong_and_how_each_job_does(page: Page) -> None:
    page.locator("nav").get_by_role("link", name="Health").click()
    detail = page.locator("#detail")
    expect(detail.locator(".problems")).to_contain_text("Elasticsearch does not answer")
    expect(detail.locator("tbody tr", has_text="normalizer").locator(".bad").last).to_have_text("3")
    expect(detail).to_contain_text(f"its last restart: ValueError: {HOSTILE}")
    picture(page, "health")


def test_the_strip_of_machines_leads_to_a_machine_with_a_small_plot_of_each_series(page: Page) -> None:
    strip = page.locator("#heat .strip", has_text="vm-1")
    expect(strip.locator("rect")).not_to_have_count(0)
    strip.click()
    expect(page.locator("#detail h2")).to_have_text("vm-1")
    expect(page.locator("#detail .onsets .spark path").first).to_have_attribute("d", re.compile("^M"))


def test_a_page_takes_new_windows_by_itself_and_keeps_its_plot_and_its_place(
    page: Page, site: tuple[WebServer, Store], endpoints: Any
) -> None:
    _, store = site
    page.goto(f"{site[0].url}/#series/rack-7/cpu")
    points = page.locator("#detail .where")
    expect(page.locator("#detail .canvas canvas").first).to_be_visible()
    before, where = points.inner_text(), page.locator("#detail .plot").first.bounding_box()
    page.evaluate("window.plot = document.querySelector('#detail canvas')")
    newest = store.one_series.last("rack-7", "cpu")
    assert newest
    later = novelty("rack-7", "cpu", newest["@timestamp"] + WINDOW, "anomaly", 77.0)
    sink = Sink(SinkConfig(endpoints.elasticsearch_url, index=store._index, alias=store._index))
    assert sink.write([SinkDocument(later.to_json())]).indexed == 1
    sink.close()
    expect(points).not_to_have_text(before, timeout=60_000)
    expect(page.locator("#detail .onsets.short a", has_text="77")).not_to_have_count(0)
    assert page.evaluate("window.plot.isConnected"), "it is the same plot, with new points"
    after = page.locator("#detail .plot").first.bounding_box()
    assert where is not None
    assert after is not None
    assert [after[name] for name in where] == pytest.approx([where[name] for name in where], abs=1)  # type: ignore[literal-required]


def test_the_keyboard_leads_everywhere(page: Page) -> None:
    page.keyboard.press("j")
    expect(page.locator("#incidents .card a").first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("#detail h3", has_text="Where it may have begun")).to_be_visible()
    page.keyboard.press("h")
    expect(page.locator("#detail h2")).to_have_text("Pipeline")
    page.keyboard.press("v")
    expect(page.locator("#detail h2")).to_have_text("Versions")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("#entity")).to_be_focused()
    page.keyboard.type("vh")
    expect(page.locator("#entity")).to_have_value("vh")
    expect(page.locator("#none")).to_be_visible()


def test_the_focus_of_the_keyboard_stays_where_it_is_while_the_page_is_asked_for_again(page: Page) -> None:
    """Tab leads to a link within a row, and to a table wider than the screen: both are made anew every two seconds."""
    link = page.locator("#rows a.to").first
    link.focus()
    for _ in range(2):  # what the first answer says is on the page when the second one comes
        with page.expect_response(lambda response: "/api/novelties" in response.url):
            pass
    expect(link).to_be_focused()
    page.keyboard.press("h")
    table = page.locator("#detail .wide-table")
    table.focus()
    page.evaluate("() => { window.before = document.querySelector('#detail .wide-table'); }")
    page.wait_for_function("() => !window.before.isConnected")
    expect(table).to_be_focused()


def test_a_server_that_takes_longer_than_the_page_waits_between_questions_is_shown_all_the_same(
    browser: Browser, site: tuple[WebServer, Store]
) -> None:
    def slow() -> dict[str, Any]:
        time.sleep(3)  # the page asks every two seconds
        return status()

    server = serve(create_app(site[1], slow), port=0)
    page = browser.new_page()
    page.goto(server.url)
    expect(page.locator("#rows tr").first).to_be_visible()
    page.close()
    server.stop()


def test_versions_that_cannot_be_compared_say_why_and_can_be_tried_again(
    browser: Browser, site: tuple[WebServer, Store]
) -> None:
    page = browser.new_page()
    page.goto(f"{site[0].url}/#compare/v1/v9")
    expect(page.locator("#detail .failed")).to_contain_text("VERSION_UNKNOWN", timeout=60_000)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.close()


def test_a_console_with_a_token_asks_for_it_once_and_then_shows_what_the_address_names(
    browser: Browser, site: tuple[WebServer, Store]
) -> None:
    server = serve(create_app(site[1], status, access=Access("0.0.0.0", TOKEN)), port=0)
    context = browser.new_context(viewport={"width": 390, "height": 844})
    try:
        page = context.new_page()
        page.goto(f"{server.url}/#machine/vm-1")
        page.get_by_label("Token of this console").fill("a wrong token")
        page.keyboard.press("Enter")
        expect(page.locator("#wrong")).to_have_text("This is not the token.")
        picture(page, "login")
        page.get_by_label("Token of this console").fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        expect(page.locator("#detail h2")).to_have_text("vm-1")
        again = context.new_page()
        again.goto(server.url)
        expect(again.locator("#rows tr").first).to_be_visible()
    finally:
        context.close()
        server.stop()


def test_the_first_view_does_not_jump_and_transfers_less_than_half_a_megabyte(
    browser: Browser, site: tuple[WebServer, Store], record_property: Any
) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 860})
    page.add_init_script(SHIFTS)
    sizes: list[float] = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(site[0].url)
    expect(page.locator("#incidents .card").first).to_be_visible()
    expect(page.locator("#rows tr").first).to_be_visible()
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    first = sum(sizes)  # what is asked for again every two seconds is not a part of it
    assert page.evaluate("window.shifted") < 0.05, "nothing moves when the first answer comes"
    for place in ("#incident/rack", "#series/rack-7/cpu", "#machine/rack-7", "#health", "#versions"):
        page.evaluate("place => { location.hash = place; }", place)
        expect(page.locator("#detail h2")).to_be_visible()
        page.wait_for_load_state("networkidle")
    record_property("first view, bytes", first)
    record_property("first view, ms", paint)
    record_property("all pages, bytes", sum(sizes))
    print(f"first view {first:,.0f} bytes, painted after {paint} ms; all pages {sum(sizes):,.0f} bytes")
    assert 50_000 < first <= MOST_BYTES
    page.close()
