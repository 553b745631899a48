"""What was done at a site, what fills up and workloads of pods, in a real browser on a real Elasticsearch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboards.console import create_app
from pipelines.contracts.records import Change
from pipelines.contracts.records.novelty import UNTIL_FULL
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import PHONE, WIDE, opened
from tests.dashboards.console_documents import (
    END,
    HOSTILE,
    PODS,
    REPLICAS,
    WINDOW,
    WORKLOADS,
    incident,
    novelty,
    stored_site,
)

pytestmark = [pytest.mark.servers, pytest.mark.browser]
MINUTE, HOUR = 60_000, 3_600_000
DISK, DB = "disk.used_percent{path=/}", "db-1"
RISE = 10.0
"""How much the disk fills in an hour, per cent; it is at 60 now."""
FULL = {"full_earliest": END + 3 * HOUR, "full_median": END + 4 * HOUR, "full_latest": END + 9 * HOUR - MINUTE}
WINDOWS = [
    {"window_end": END - i * 6 * MINUTE, "mean": 60.0 - RISE * i / 10, "metric_kind": "gauge", "kind": "normal",
     "typical": 60.0 - RISE * i / 10, "lower": 58.0 - RISE * i / 10, "upper": 62.0 - RISE * i / 10}
    for i in reversed(range(50))
]  # fmt: skip
TOLD = novelty(DB, DISK + UNTIL_FULL, END, "exhaustion", 75.0).model_copy(
    update={"actual": 60.0, "typical": None, "lower": None, "upper": None, "since": END - WINDOW, **FULL}
)
PEER = novelty("web-7", "_peers.latency.p95", END, "outlier", 80.0).model_copy(update={"actual": 62.0, "typical": 20.0})
NOVELTIES = [*REPLICAS, TOLD, PEER, *(novelty(DB, "cpu", END - i * WINDOW, "normal", 1.0) for i in range(30))]
CHANGES = [
    Change(id="r1", time=END - HOUR, kind="deployment", message="cart 1.4", machines=["db-*"], by="ci"),
    Change(id="r2", time=END - 2 * HOUR, kind="feature_flag", message=HOSTILE),
    Change(id="r3", time=END - 2 * MINUTE, kind="restart", message="restart of db-1", machines=[DB]),
    Change(id="r4", time=END - 2 * MINUTE, kind="restart", message="another machine", machines=["web-1"]),
]
INCIDENTS = [
    incident("pods", "open", 80, [REPLICAS[7].entity]).model_copy(
        update={"message": "shop/app07: cpu 3 × the usual", "machines": [
            incident("x", "open", 1, [REPLICAS[7].entity]).machines[0].model_copy(update={"workload": "shop/app07"})
        ]}
    ),
]  # fmt: skip


class Filling:
    """What is believed of `DB`: its disk fills, its memory perhaps never does."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def machine(self, entity: str, most: int) -> list[dict[str, Any]]:
        if entity != DB:
            return []
        said: dict[str, Any] = {"host.name": DB, "@timestamp": END, "kind": "normal", "values": 50}
        disk = said | {"metric": DISK, "typical": 60.0, "lower": 58.0, "upper": 62.0, **FULL}
        memory = said | {"metric": "mem.used_percent", "full_earliest": END + HOUR, "full_median": END + 90 * HOUR}
        return [
            {"metric": DISK, "state": disk, "windows": WINDOWS, "needed": 8},
            {"metric": "mem.used_percent", "state": memory, "windows": WINDOWS, "needed": 8},
        ]

    def series(self, entity: str, metric: str) -> dict[str, Any]:
        nothing: dict[str, Any] = {"state": None, "windows": [], "needed": 8}
        found = next((each for each in self.machine(entity, 9) if each["metric"] == metric), nothing)
        return {"age": None, **found}

    def machines(self, most: int) -> list[str]:
        return [DB, *(each.entity for each in REPLICAS)]

    def full(self, most: int) -> list[dict[str, Any]]:
        return [each["state"] for each in self.machine(DB, most)]

    def site(self) -> dict[str, Any]:
        return {"machines": PODS + 1, "learning": [], "learning_count": 0, "last": END}


@pytest.fixture(scope="module")
def console(endpoints: Any) -> Iterator[WebServer]:
    with stored_site(endpoints.elasticsearch_url, NOVELTIES, INCIDENTS, CHANGES) as store:
        server = serve(create_app(store, beliefs=Filling()), port=0)
        yield server
        server.stop()


@pytest.fixture(params=[(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"])
def page(browser: Browser, console: WebServer, request: pytest.FixtureRequest) -> Iterator[Page]:
    size, colours = request.param
    with opened(browser, console.url, request, size, color_scheme=colours) as page:
        expect(page.locator("body")).to_have_attribute("data-ready", "true")
        yield page


def open_series(page: Page, metric: str, hours: int) -> None:
    """Opens the page of a series of `DB`."""
    page.evaluate(
        "([entity, metric, hours]) => { location.hash = `#series/${entity}/${encodeURIComponent(metric)}/${hours}`; }",
        [DB, metric, hours],
    )
    expect(page.locator("#detail h2")).to_contain_text(DB)
    expect(page.locator("#detail .canvas").first.locator("canvas")).to_be_visible()


INKED = """(canvas, [tone, share]) => {
  const over = canvas.parentElement.querySelector(".u-over"), ratio = canvas.width / canvas.clientWidth;
  const [left, width] = ["left", "width"].map((side) => parseFloat(over.style[side]) * ratio);
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(--${tone})`;
  const hue = (dot) => [dot[0] - dot[1], dot[1] - dot[2], dot[2] - dot[0]];
  const wanted = hue(getComputedStyle(probe).color.match(/\\d+/g).map(Number));
  probe.remove();
  const dots = canvas.getContext("2d").getImageData(Math.round(left + share * width) - 2, 0, 5, canvas.height).data;
  let found = 0;
  for (let i = 0; i < dots.length; i += 4) {
    const mine = hue(dots.slice(i, i + 3)), seen = dots[i + 3] > 20 && Math.max(...mine.map(Math.abs)) > 15;
    if (seen && mine.every((each, c) => Math.abs(wanted[c]) < 25 || each * wanted[c] > 0)) found += 1;
  }
  return found;
}"""


def inked(page: Page, tone: str, share: float) -> int:
    """How many dots near a vertical line of the large plot have about a colour of the page."""
    return int(page.locator("#detail .canvas canvas").first.evaluate(INKED, [tone, share]))


def test_a_disk_that_fills_has_its_forecast_in_words_and_drawn_ahead_of_now_up_to_its_bound(page: Page) -> None:
    open_series(page, DISK, 24)
    detail = page.locator("#detail")
    expect(detail.locator(".filling")).to_contain_text("Full in 3 to 9 hours (95 %).")
    expect(detail.locator(".filling")).to_contain_text("it reaches 100")
    expect(detail.locator(".legend").first).to_contain_text("until it is full (95 %)")
    length = 49 * 6 * MINUTE
    end = min(FULL["full_latest"] - END, length)
    shares = {name: (length + at) / (length + end) for name, at in (("before", -HOUR), ("in it", 3.5 * HOUR))}
    assert inked(page, "exhaustion", shares["in it"]) > 20, "the band between the earliest and the latest course"
    assert inked(page, "exhaustion", shares["before"]) == 0


def test_what_may_never_be_full_says_so_and_is_no_part_of_what_fills_on_the_machine(page: Page) -> None:
    open_series(page, "mem.used_percent", 24)
    expect(page.locator("#detail .filling")).to_have_text("Full in 60 minutes or more, perhaps never.")
    page.evaluate("name => { location.hash = `#machine/${name}`; }", DB)
    rows = page.locator("#detail .onsets.full a")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(f"{DISK} full in 3 to 9 hours (95 %)")
    corners = rows.locator(".ahead").get_attribute("d") or ""
    (last, value), (soon, bound), (late, still) = (map(float, each.split()) for each in corners.strip("MZ").split("L"))
    assert value > bound == still, "from the last value up to the bound"
    hour = 10 * 48 / 49  # spans of the small plot: 48 of them are 49 windows of six minutes
    assert (soon - last, late - last) == (pytest.approx(3 * hour, abs=1.5), pytest.approx(9 * hour, abs=1.5))
    rows.click()
    expect(page.locator("#detail h2")).to_have_text(f"{DISK} of {DB}")


def test_the_overview_lists_what_is_full_next_in_the_same_words(page: Page) -> None:
    rows = page.locator("#full .onsets a")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text(f"{DB} {DISK} full in ")
    expect(rows.last).to_contain_text("perhaps never")


def test_news_of_a_full_disk_is_shown_on_the_plot_of_the_disk_and_named_for_people(page: Page) -> None:
    row = page.locator("#rows tr", has_text="until full")
    expect(row).to_contain_text(f"{DISK} until full")
    expect(row.locator(".what")).to_have_text("full in 3 to 9 hours (95 %)")
    row.locator(".what").click()
    detail = page.locator("#detail")
    expect(detail.locator("h2")).to_have_text(f"Full soon: {DB}")
    expect(detail.locator(".canvas")).to_have_attribute("data-marked", "exhaustion")
    expect(detail.locator(".legend").first).to_contain_text("until it is full (95 %)")
    detail.locator("summary", has_text="Figures").click()
    expect(detail.locator("details", has_text="Figures")).to_contain_text("as likely as after")
    expect(detail.locator(".bars")).to_have_count(0)
    page.evaluate("() => { location.hash = ''; }")
    peer = page.locator("#rows tr", has_text="beside peers")
    expect(peer).to_contain_text("latency.p95 beside peers")
    expect(peer.locator(".what")).to_have_text("3.1 × what its peers suggest")


def test_changes_are_drawn_on_the_plots_of_a_series_and_of_a_machine_and_listed_with_whom_they_concern(
    page: Page,
) -> None:
    open_series(page, DISK, 24)
    detail = page.locator("#detail")
    listed = detail.locator(".changes .change")
    expect(listed).to_have_count(3)
    expect(listed.nth(0)).to_contain_text("restart: restart of db-1")
    expect(listed.nth(1)).to_contain_text("deployment: cart 1.4 · db-* · by ci")
    expect(listed.nth(2)).to_contain_text("the whole site")
    expect(detail.locator(".legend").first).to_contain_text("change")
    over = detail.locator(".canvas .u-over").first
    box = over.bounding_box()
    assert box is not None
    length = 49 * 6 * MINUTE
    whole = length + min(FULL["full_latest"] - END, length)
    over.hover(position={"x": (length - HOUR) / whole * box["width"], "y": box["height"] / 2})
    expect(detail.locator(".legend").first).to_contain_text("deployment: cart 1.4")
    page.mouse.move(0, 0)
    page.evaluate("name => { location.hash = `#machine/${name}`; }", DB)
    expect(detail.locator(".changes .change")).to_have_count(3)
    marks = detail.locator(".of-series a", has_text=DISK).first.locator(".spark .done")
    expect(marks).to_have_count(3)
    expect(marks.locator("title").first).to_have_text("restart: restart of db-1")


def test_two_hundred_pods_of_twelve_workloads_are_twelve_lanes_that_open(page: Page) -> None:
    lanes = page.locator("#heat button.strip")
    expect(lanes).to_have_count(WORKLOADS)
    expect(page.locator("#heat a.strip")).to_have_count(2)  # of the machines that are no replicas
    first = lanes.first
    expect(first).to_contain_text("shop/app07 17×")
    expect(first).to_have_class("strip ongoing")
    first.click()
    expect(first).to_have_attribute("aria-expanded", "true")
    replicas = page.locator("#heat a.strip.replica")
    expect(replicas).to_have_count(17)
    expect(replicas.first).to_contain_text(REPLICAS[7].entity)
    first.click()
    expect(replicas).to_have_count(0)
    first.click()
    replicas.first.click()
    expect(page.locator("#detail h2")).to_have_text(REPLICAS[7].entity)
    page.evaluate("() => { location.hash = ''; }")
    page.locator("#entity").fill("shop/app0")
    expect(page.locator("#entities option[value='shop/app07']")).to_have_count(1)
    assert page.locator("#entities option").count() <= WORKLOADS + 3, "names of workloads stand for those of pods"
