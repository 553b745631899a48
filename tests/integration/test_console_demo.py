"""The demo as an operator sees it in a browser: an incident, its series; what it was is said, maintenance is set."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import chromium
from tests.integration.conftest import Pipeline

pytestmark = [
    pytest.mark.servers, pytest.mark.spark, pytest.mark.browser, pytest.mark.slow, pytest.mark.long,
    pytest.mark.timeout(1200),
]  # fmt: skip

PAGE_BYTES, FIRST_VIEW_SECONDS = 500_000, 4.0
"""The first view takes less than a second on a quiet machine; here a pipeline runs beside it."""

_BEHIND_MS, _ANSWER_MS = 60_000, 240_000


@pytest.fixture
def address(pipeline: Pipeline) -> str:
    """The address of the console of a demo that judges the present, and has an open incident."""
    pipeline.process = pipeline.spawn("demo")
    found: list[str] = []

    def told() -> bool:
        found.extend(re.findall(r"http://127\.0\.0\.1:\d+(?=\s)", pipeline.log.read_text()))
        return bool(found)

    pipeline.wait("the address of the console", told)

    def asked(path: str, **query: object) -> dict[str, Any]:
        return dict(httpx.get(found[-1] + path, params=query, timeout=30).json())  # type: ignore[arg-type]

    def live() -> bool:
        newest = asked("/api/novelties", kind="normal", limit=1)
        return bool(newest.get("novelties")) and newest["now"] - newest["novelties"][0]["@timestamp"] < _BEHIND_MS

    pipeline.wait("verdicts on the present", live, 600)
    pipeline.wait("an open incident", lambda: bool(asked("/api/incidents").get("open")), 300)
    return found[-1]


def test_an_operator_finds_an_incident_labels_it_and_silences_its_machine(address: str) -> None:
    with chromium() as browser:
        if folder := os.environ.get("NEWNORMAL_SCREENSHOTS"):
            _photographs(address, browser, Path(folder))
        _finds_labels_and_silences(address, browser)


def _photographs(address: str, browser: Browser, folder: Path) -> None:
    """The pictures of docs/console.md: the overview, an incident, one of its series."""
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    page.goto(address)
    expect(page.locator("#incidents .card").first).to_be_visible()
    page.screenshot(path=str(folder / "console-overview.png"))
    page.locator("#incidents > .cards .card").first.click()
    detail = page.locator("#detail")
    expect(detail.locator(".onsets > div").first).to_be_visible()
    page.screenshot(path=str(folder / "console-incident.png"))
    detail.locator(".onsets > div", has_not_text="all metrics").first.locator("a").click()
    expect(detail.locator(".canvas[data-marked] canvas")).to_be_visible()
    page.screenshot(path=str(folder / "console-series.png"))
    page.close()


def _finds_labels_and_silences(address: str, browser: Browser) -> None:
    page, wrong, sizes = browser.new_page(viewport={"width": 390, "height": 844}), list[str](), list[int]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("response", lambda reply: sizes.append(len(reply.body())) if "/page/" in reply.url else None)
    page.goto(address)
    expect(page.locator("#incidents .card").first).to_be_visible()
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    assert painted < FIRST_VIEW_SECONDS
    assert sum(sizes) < PAGE_BYTES

    page.locator("#incidents > .cards .card").first.click()
    detail = page.locator("#detail")
    row = detail.locator(".onsets > div", has_not_text="all metrics").first
    machine, metric = (row.locator(".name").inner_text()).split(" ", 1)
    row.locator("a").click()
    expect(detail.locator(".canvas[data-marked] canvas")).to_be_visible()  # two clicks
    page.go_back()

    before = time.time() * 1000
    row.get_by_role("button", name="Expected").click()
    expect(row.locator(".outcome")).to_contain_text("the detector has judged", timeout=_ANSWER_MS)
    _silence(page, machine)
    answer = {"entity": machine, "metric": metric, "after": int(before)}
    verdict = httpx.get(f"{address}/api/answer", params=answer, timeout=20).json()["verdict"]
    assert verdict["incident.state"] != "open", "what was expected is no incident any more"
    assert (verdict["kind"], verdict["record_score"]) == ("normal", 0.0)
    assert verdict["rules"] == [f"maintenance of {machine}"]
    page.close()
    assert wrong == []


def _silence(page: Page, machine: str) -> None:
    """Sets maintenance of a machine by click, and waits until the detector respects it."""
    detail = page.locator("#detail")
    detail.get_by_label("Machine", exact=True).select_option(machine)
    detail.get_by_role("button", name="30 min").click()
    expect(detail.locator(".outcome", has_text="In maintenance for 30 min")).to_be_visible(timeout=_ANSWER_MS)
