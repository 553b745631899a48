"""Three in the morning, on a phone: what an operator sees first, understands in two clicks, and can touch."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from dashboards.console import Promises, create_app
from dashboards.status import JobStatus, PipelineStatus
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import picture
from tests.dashboards.console_documents import END, WINDOW, stored_site
from tests.dashboards.console_night import (
    INCIDENTS,
    MINUTE,
    NOVELTIES,
    OUTAGE,
    SILENCED,
    SILENT_MS,
    SURGE,
    SURGED,
)

pytestmark = [pytest.mark.servers, pytest.mark.browser]

ZONE = "Asia/Kolkata"
TARGET = 44
PAGES = {"overview": "", "surge": "#incident/surge", "silence": "#incident/silence", "machine": "#machine/vm-00003",
         "series": "#series/vm-00003/cpu.util", "health": "#health", "versions": "#versions"}  # fmt: skip
SMALL = """() => [...document.querySelectorAll("button, summary, select, input, nav a, #state, #back, .card .open, a.strip, button.strip, a.row, td a")]
  .filter((it) => it.checkVisibility() && !it.disabled && it.type !== "range")
  .map((it) => [it.outerHTML.slice(0, 90), Math.round(Math.max(it.getBoundingClientRect().height, it.matches(".open") ? it.closest(".card").getBoundingClientRect().height : 0))])
  .filter(([, height]) => height < 44)"""  # noqa: E501
"""What can be touched and is lower than `TARGET` px."""
CUT = """() => [...document.querySelectorAll("main *")]
  .filter((it) => it.checkVisibility() && it.childNodes.length && !it.closest("svg, .canvas, .wide-table, #list thead"))
  .filter((it) => it.clientWidth > 0 && it.scrollWidth > it.clientWidth + 1)
  .filter((it) => getComputedStyle(it).overflowX !== "visible")
  .map((it) => it.outerHTML.slice(0, 120))"""
"""What is wider than the place in which it is shown."""


TITLE = f"[critical] opened: {SURGED.message}"


class Topics:
    """What operators have said before, as it is read from Kafka."""

    def in_force(self) -> dict[str, list[dict[str, Any]]]:
        moved = {"host.name": "vm-00003", "parent": "host-001", "moved_from": "host-004", "@timestamp": SURGE - MINUTE}
        rule = {
            "id": "maintenance of host-001",
            "host.name": "host-001",
            "@timestamp": END - MINUTE,
            "skip_result": True,
        }
        label = {"host.name": "vm-00003", "metric": "cpu.util", "verdict": "false_alarm",
                 "event.start": SURGE, "event.created": END - MINUTE}  # fmt: skip
        ann = {"event.id": "surge", "@timestamp": SURGE + 2 * MINUTE, "active": True, "user.name": "ann", "note": ""}
        return {
            "rules": [rule],
            "labels": [label],
            "placements": [moved],
            "acknowledgements": [ann, ann | {"@timestamp": SURGE + 3 * MINUTE, "active": False}],
            "told": [
                {"at": SURGE + MINUTE, "channel": "night", "state": "opened", "title": TITLE, "incidents": ["surge"]}
            ],
        }


def status() -> dict[str, Any]:
    jobs = tuple(
        JobStatus(name, 9, 9, 50.0, lag=0, watermark=int(time.time() * 1000)) for name in ("normalizer", "detector")
    )
    return PipelineStatus(END - 60 * MINUTE, jobs).to_dict()


@pytest.fixture(scope="module")
def console(endpoints: Any) -> Iterator[WebServer]:
    with stored_site(endpoints.elasticsearch_url, NOVELTIES, INCIDENTS) as store:
        server = serve(create_app(store, status, actions=Topics(), promises=Promises(2.0, 1.0)), port=0)  # type: ignore[arg-type]
        yield server
        server.stop()


def opened(browser: Browser, console: WebServer, width: int, place: str = "") -> Page:
    height = 844 if width < 600 else 900
    page = browser.new_page(viewport={"width": width, "height": height}, timezone_id=ZONE)
    page.goto(f"{console.url}/{place}")
    expect(page.locator("#state")).to_have_text("Running")
    if place:
        expect(page.locator("#detail h2")).to_be_visible()
        page.wait_for_load_state("networkidle")
    else:
        expect(page.locator("#heat .overall")).to_be_attached()
    return page


@pytest.mark.parametrize(("name", "width"), [("overview", 1440), ("incident", 390), ("series", 1440), ("phone", 390)])
def test_the_pictures_of_the_docs_are_of_this_night(
    browser: Browser, console: WebServer, name: str, width: int
) -> None:
    page = opened(browser, console, width, place="#incident/surge" if name == "incident" else "")
    if name == "series":
        page.locator("#rows tr td.what").first.click()
        expect(page.locator("#detail .canvas[data-marked] canvas")).to_be_visible()
    else:
        expect(page.locator(".band .expected:visible").first).to_be_visible()
    picture(page, f"console-{name}", whole=name == "incident")
    page.close()


def clock(ms: int, zone: str = ZONE) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC).astimezone(ZoneInfo(zone)):%H:%M}"


@pytest.mark.parametrize("width", [1440, 390])
def test_a_screen_reader_finds_nothing_amiss_on_any_page_light_or_dark(
    browser: Browser, console: WebServer, width: int
) -> None:
    found = {}
    for name, place in PAGES.items():
        page = opened(browser, console, width, place=place)
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours)
            violations = Axe().run(page).response["violations"]
            found[name, colours] = [(each["id"], [node["target"] for node in each["nodes"][:3]]) for each in violations]
            picture(page, f"night-{name}-{width}-{colours}")
        page.close()
    assert found == {(name, colours): [] for name in PAGES for colours in ("light", "dark")}


@pytest.mark.parametrize("place", [*PAGES.values()], ids=[*PAGES])
def test_on_a_phone_nothing_is_cut_and_what_can_be_touched_is_large_enough(
    browser: Browser, console: WebServer, place: str
) -> None:
    page = opened(browser, console, 390, place=place)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the screen"
    assert page.evaluate(CUT) == []
    assert page.evaluate(SMALL) == []
    page.close()


def test_the_first_card_is_on_the_first_screen_of_a_phone_with_what_where_and_since_when(
    browser: Browser, console: WebServer
) -> None:
    page = opened(browser, console, 390)
    card = page.locator("#incidents .card").first
    expect(card.locator("b")).to_have_text(SURGED.message)
    expect(card.locator(".band .expected").first).to_be_attached()
    expect(card.locator(".facts")).to_contain_text(re.compile(rf"since .*{clock(SURGE)}, for \d+ min"))
    for part in (card.locator("b"), card.locator(".band"), card.get_by_role("button", name="Acknowledge")):
        box = part.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 844
    page.close()


@pytest.mark.parametrize("width", [1440, 390])
def test_a_surge_is_understood_after_one_click_by_values_with_units_and_bands(
    browser: Browser, console: WebServer, width: int
) -> None:
    page = opened(browser, console, width)
    page.locator("#incidents .card", has_text="http.requests").locator("a").first.click()
    detail = page.locator("#detail")
    expect(detail.locator("h2")).to_have_text(SURGED.message)
    expect(detail.locator("h2")).to_be_in_viewport()
    expect(detail.locator(".multiples .machine a")).to_have_text(["vm-00003", "host-001"])
    expect(detail.locator(".multiples .machine").first).to_contain_text("on host-001")
    row = detail.locator(".row", has_text="cpu.util").first
    expect(row.locator(".change")).to_have_text("27 → 71 %")
    expect(row.locator(".values")).to_have_text("71 %, usual: 25.1 to 28.9 %")
    expect(row.locator(".expected").first).to_be_attached()
    expect(row.locator(".novel")).to_be_attached()
    expect(row).to_be_in_viewport()
    expect(detail).to_contain_text("vm-00003 moved from host-004 to host-001")
    expect(detail).to_contain_text("maintenance of host-001: not reported")
    expect(detail.locator(".similar")).to_contain_text("a newsletter went out")
    expect(detail.locator(".similar")).to_contain_text("lasted 3 min")
    page.close()


@pytest.mark.parametrize("width", [1440, 390])
def test_an_incident_says_who_was_told_when_who_looked_after_it_and_draws_where_its_machines_stand(
    browser: Browser, console: WebServer, width: int
) -> None:
    page = opened(browser, console, width, place="#incident/surge")
    detail = page.locator("#detail")
    told = detail.locator(".told li")
    expect(told).to_contain_text(f"to night: opened{TITLE}")
    expect(told.locator("time")).to_have_attribute("datetime", _iso(SURGE + MINUTE))
    steps = detail.locator(".history li")
    said = ["began to be unusual", "was reported", "ann acknowledged it", "ann no longer looks after it"]
    for step, text in enumerate(said):
        expect(steps.nth(step)).to_contain_text(text)
    expect(steps.nth(2).locator("time")).to_have_attribute("datetime", _iso(SURGE + 2 * MINUTE))
    host = detail.locator(".places li", has=page.locator(".on"))
    expect(host).to_have_count(1)
    # both began with the first series of the incident; the drawing holds the host and the machine on it
    expect(host.locator(".place").first).to_contain_text("host-001")
    expect(host.locator(".on .place")).to_contain_text("vm-00003")
    expect(host.locator(".on .place")).to_have_attribute("data-shade", "0")
    page.close()


def test_an_outage_begins_with_the_silence_and_what_is_over_does_not_go_on_lasting(
    browser: Browser, console: WebServer
) -> None:
    page = opened(browser, console, 390)
    card = page.locator("#incidents .card", has_text="vm-00015")
    ended = OUTAGE + SILENT_MS + 2 * WINDOW
    expect(card.locator(".facts")).to_contain_text(
        f"{clock(OUTAGE)}, lasted 110 s; is closed at {clock(ended + 300_000)} if"
    )
    card.locator("a").first.click()
    detail = page.locator("#detail")
    expect(detail.locator("h2")).to_have_text(SILENCED.message)
    expect(detail.locator(".row").first.locator(".name")).to_have_text("all its metrics")
    expect(detail.locator(".row").first.locator(".change")).to_have_text("sent nothing for 90 s")
    expect(detail.locator(".where").first).not_to_contain_text("unusual now")
    page.locator("#back").click()
    expect(card).to_be_visible()
    page.close()


def test_times_are_those_of_the_reader_and_utc_is_shown_on_hover(browser: Browser, console: WebServer) -> None:
    page = opened(browser, console, 1440, place="#incident/surge")
    told = page.locator("#detail .where time").first
    expect(told).to_contain_text(clock(SURGE))
    utc = datetime.fromtimestamp(SURGE / 1000, UTC)
    expect(told).to_have_attribute("title", f"{utc:%Y-%m-%d %H:%M:%S} UTC")
    page.close()


def test_the_newest_incident_is_opened_in_the_empty_half_of_a_wide_screen_and_only_there(
    browser: Browser, console: WebServer
) -> None:
    page = opened(browser, console, 1440)
    expect(page.locator("#detail h2")).to_have_text(SURGED.message)
    expect(page.locator("#incidents .card.chosen")).to_contain_text("http.requests")
    assert page.evaluate("location.hash") == "", "nobody has chosen it"
    page.close()
    phone = opened(browser, console, 390)
    expect(phone.locator("#detail")).not_to_be_visible()
    phone.close()


def test_the_lanes_begin_at_the_first_datum_with_what_goes_on_first_and_a_range_can_be_picked(
    browser: Browser, console: WebServer
) -> None:
    page = opened(browser, console, 1440)
    lanes = page.locator("#heat .strip")
    expect(lanes.first).to_contain_text("All machines")
    names = page.locator("#heat a.strip .name")
    expect(names).to_have_text(["host-001", "vm-00003", "host-007", "vm-00015", "vm-00004"])
    expect(page.locator("#heat a.ongoing")).to_have_count(4)
    first = min(each.window_end for each in NOVELTIES)
    axis = page.locator("#heat .axis time")
    assert abs(first - _instant(axis.first)) < 2 * MINUTE, "100 minutes of data in 6 hours begin at the left edge"
    page.locator("#heat").get_by_role("button", name="1 h").click()
    expect(names).to_have_text(["host-001", "vm-00003", "host-007", "vm-00015"])
    assert abs(_instant(axis.last) - _instant(axis.first) - 60 * MINUTE) < 2 * MINUTE
    page.close()


def _iso(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _instant(time: Any) -> int:
    return int(datetime.fromisoformat(time.get_attribute("datetime").replace("Z", "+00:00")).timestamp() * 1000)


def test_the_first_view_takes_less_than_half_a_megabyte(browser: Browser, console: WebServer) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    sizes: list[float] = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(console.url)
    expect(page.locator("#incidents .card").first).to_be_visible()
    seen = page.evaluate("performance.now()") / 1000
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    print(f"{sum(sizes):,.0f} bytes, painted after {painted:.2f} s, the first card after {seen:.2f} s at most")
    assert sum(sizes) < 500_000
    page.close()
