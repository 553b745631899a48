"""The demo as an operator sees it in a browser: an incident, its series; what it was is said, maintenance is set."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.chromium import chromium
from tests.integration.conftest import Pipeline

pytestmark = [
    pytest.mark.servers, pytest.mark.spark, pytest.mark.browser, pytest.mark.slow, pytest.mark.long,
    pytest.mark.timeout(1200),
]  # fmt: skip

PAGE_BYTES, FIRST_VIEW_SECONDS = 500_000, 4.0
"""The first view takes less than a second on a quiet machine; here a pipeline runs beside it."""

_BEHIND_MS, _ANSWER_MS, _NEAR_MS, _VIEW_MS = 60_000, 240_000, 60_000, 20_000
_NO_SERIES = ("_machine", "logs")
_WHOLE = re.compile("all (its )?metrics|logs|its log")


@dataclass(frozen=True)
class Demo:
    """A running demo.

    Args:
        address: Where its console is.
        truth: The file of its ground truth.
    """

    address: str
    truth: Path

    def asked(self, path: str, **query: object) -> dict[str, Any]:
        """An answer of the console."""
        return dict(httpx.get(self.address + path, params=query, timeout=30).json())  # type: ignore[arg-type]

    def injected(self) -> str | None:
        """The id of an open incident on a machine in which something was injected then, with a series that is novel."""
        rows = [json.loads(line) for line in self.truth.read_text().splitlines()] if self.truth.exists() else []
        for incident in self.asked("/api/incidents").get("open", ()):
            begun = incident["event.start"]
            machines = {row["entity"] for row in rows if row["start"] - _NEAR_MS <= begun <= row["end"] + _NEAR_MS}
            listed = self.asked("/api/incident", id=incident["event.id"]).get("series", ())
            if any(each["entity"] in machines and each["metric"] not in _NO_SERIES for each in listed):
                return str(incident["event.id"])
        return None


@pytest.fixture
def demo(pipeline: Pipeline) -> Demo:
    """A demo that judges the present, and has an open incident that was injected; it stores all verdicts by itself."""
    del pipeline.environment["NEWNORMAL_DETECTOR__EMIT"]
    pipeline.process = pipeline.spawn("demo")
    found: list[str] = []

    def told() -> bool:
        found.extend(re.findall(r"http://127\.0\.0\.1:\d+(?=\s)", pipeline.log.read_text()))
        return bool(found)

    pipeline.wait("the address of the console", told)
    demo = Demo(found[-1], pipeline.settings.file("groundtruth.jsonl"))

    def live() -> bool:
        newest = demo.asked("/api/novelties", kind="normal", limit=1)
        return bool(newest.get("novelties")) and newest["now"] - newest["novelties"][0]["@timestamp"] < _BEHIND_MS

    pipeline.wait("verdicts on the present, of quiet windows too", live, 600)
    pipeline.wait("an open incident that was injected", lambda: demo.injected() is not None, 300)
    return demo


def test_an_operator_finds_an_injected_incident_labels_it_and_silences_its_machine(demo: Demo) -> None:
    expect.set_options(timeout=_VIEW_MS)  # the pipeline beside the browser keeps both cores busy
    with chromium() as browser:
        if folder := os.environ.get("NEWNORMAL_SCREENSHOTS"):
            _photographs(demo.address, browser, Path(folder))
        for width, height in ((1440, 860), (390, 844)):
            page, wrong = _opened(browser, demo.address, width, height)
            _leads_to_the_plot(page, demo)
            if width == 390:
                _labels_and_silences(page, demo.address)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
                "it is not wider than the screen"
            )
            page.close()
            assert wrong == []


def _photographs(address: str, browser: Browser, folder: Path) -> None:
    """Pictures of a demo, for people to look at; those of the docs are of `tests.browser.test_console_night`."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    expect(page.locator("#incidents .card").first).to_be_visible()
    page.screenshot(path=str(folder / "demo-overview.png"))
    page.locator("#incidents > .cards .card a").first.click()
    detail = page.locator("#detail")
    expect(detail.locator(".multiples .row").first).to_be_visible()
    page.screenshot(path=str(folder / "demo-incident.png"))
    page.close()


def _opened(browser: Browser, address: str, width: int, height: int) -> tuple[Page, list[str]]:
    """The overview in a new window, and the list that takes the errors of the page."""
    page, wrong, sizes = browser.new_page(viewport={"width": width, "height": height}), list[str](), list[float]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(address)
    expect(page.locator("#incidents .card").first).to_be_visible()
    first = sum(sizes)
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    loaded = page.evaluate("performance.now()") / 1000
    print(f"{width} px: {first:,.0f} bytes, painted after {painted:.2f} s, incidents seen after {loaded:.2f} s at most")
    assert first < PAGE_BYTES
    assert painted < FIRST_VIEW_SECONDS
    return page, wrong


def _leads_to_the_plot(page: Page, demo: Demo) -> None:
    """Two clicks lead from the overview to the plot of a series of the injected incident; then it goes back to it."""
    identity = demo.injected()
    assert identity is not None
    page.locator(f'#incidents > .cards .card[data-id="{identity}"] a').click()
    detail = page.locator("#detail")
    _row(page).click()
    expect(detail.locator(".canvas[data-marked] canvas")).to_be_visible()
    page.go_back()
    expect(_row(page)).to_be_visible()


def _row(page: Page) -> Locator:
    """The first single series of the incident that is open."""
    return page.locator("#detail .multiples .row", has_not_text=_WHOLE).first


def _labels_and_silences(page: Page, address: str) -> None:
    page.locator("#detail summary", has_text="Say what single series were").click()
    row = page.locator("#detail .label-row", has_not_text=_WHOLE).first
    machine, metric = (row.locator("span").first.inner_text()).split(" ", 1)
    before = time.time() * 1000
    row.get_by_role("button", name="Expected").click()
    expect(row.locator(".outcome")).to_contain_text("the detector has judged", timeout=_ANSWER_MS)
    _silence(page, machine)
    answer = {"entity": machine, "metric": metric, "after": int(before)}
    verdict = httpx.get(f"{address}/api/answer", params=answer, timeout=20).json()["verdict"]
    assert verdict.get("incident.state") != "open", "what was expected is no incident any more"
    assert (verdict["kind"], verdict["record_score"]) == ("normal", 0.0)
    assert verdict["rules"] == [f"maintenance of {machine}"]


def _silence(page: Page, machine: str) -> None:
    """Sets maintenance of a machine by click, and waits until the detector respects it."""
    detail = page.locator("#detail")
    detail.locator("summary", has_text="Maintenance").click()
    detail.get_by_label("Machine", exact=True).select_option(machine)
    detail.get_by_role("button", name="30 min").click()
    expect(detail.locator(".outcome", has_text="In maintenance for 30 min")).to_be_visible(timeout=_ANSWER_MS)
