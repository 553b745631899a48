"""Each figure of the pages of a machine, of a series and of health, computed again from the documents."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote
from zoneinfo import ZoneInfo

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from dashboards.console import create_app
from engine.runtime.shard import Stats
from engine.spark.query import BatchReport
from engine.spec.duration import iso
from pipelines.contracts.records import Novelty
from pipelines.jobs.sink.document import SinkOutcome
from pipelines.jobs.sink.job import SinkReport
from pipelines.runtime.status import StatusCollector
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import opened
from tests.dashboards.console_documents import END, WINDOW, novelty, stored_site

pytestmark = [pytest.mark.servers, pytest.mark.browser]

HOST, FIRST = "fig-1", END - 59 * WINDOW
ONSET = END - 20 * WINDOW


def verdicts() -> Iterator[Novelty]:
    """An hour is the range of the page, and ten minutes is what there is: 60 windows of a share, and a counter."""
    band = {"typical": 0.47, "lower": 0.42, "upper": 0.52, "metric_kind": "ratio"}
    opened = {"since": ONSET, "incident_state": "open"}
    for i in range(60):
        end, novel = FIRST + i * WINDOW, 40 <= i < 43
        plain = novelty(HOST, "cpu.util", end, "anomaly" if novel else "normal", 80.0 + i % 5 if novel else 7.0)
        value = {"actual": 0.7145 if i >= 40 else 0.46}
        yield plain.model_copy(update=band | value | ({"since": None} if i < 40 else opened))
    for i in range(50, 60):
        plain = novelty(HOST, "net.bytes_sent", FIRST + i * WINDOW, "normal", 3.0)
        counted = {"metric_kind": "counter", "actual": 5.25e6 + i, "typical": 5e6, "lower": 4e6, "upper": 6e6}
        yield plain.model_copy(update=counted)


DOCUMENTS = [*verdicts()]
LATENCIES = (9_400, 13_200, 17_100)
"""From the end of a window until it is found, milliseconds."""
FULL = ("full_earliest", "full_median", "full_latest")


class Quiet:
    """A series of which nothing is stored, and a machine that is learned."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def series(self, entity: str, metric: str) -> dict[str, Any]:
        found = [each for each in self.machine(entity, 9) if each["metric"] == metric]
        return {"age": None, **(found[0] if found else {"state": None, "windows": [], "needed": 8})}

    def machine(self, entity: str, most: int) -> list[dict[str, Any]]:
        band = {"typical": 184e9, "lower": 180e9, "upper": 190e9, "kind": "normal", "metric_kind": "gauge"}
        windows = [{"window_end": END - i * WINDOW, "mean": 184.2e9, **band} for i in (2, 1, 0)]
        state = {"host.name": HOST, "@timestamp": END - 2 * WINDOW, "values": 30, **band}
        new = [{"window_end": END, "mean": 3.0, "metric_kind": "gauge"}]
        return [
            {"metric": "mem.used", "state": state, "windows": windows, "needed": 8},
            {"metric": "new", "state": None, "windows": new, "needed": 8},
        ] if entity == HOST else []  # fmt: skip

    def machines(self, most: int) -> list[str]:
        return [HOST, "web-1"]

    def full(self, most: int) -> list[dict[str, Any]]:
        now, hour = int(time.time() * 1000), 3_600_000
        return [
            {"host.name": HOST, "metric": metric} | dict(zip(FULL, (at and round(at) for at in times), strict=True))
            for metric, times in (
                ("disk.used_percent{path=/a}", (now - 2 * hour, now - hour, now - hour)),
                ("disk.used_percent{path=/b}", (now + 3.02 * hour, now + 5 * hour, now + 9.02 * hour)),
                ("disk.used_percent{path=/c}", (now + 4.02 * hour, now + 50 * hour, None)),
            )
        ]

    def site(self) -> dict[str, Any]:
        learning = [{"name": "web-1", "windows": 5, "needed": 8}]
        return {"machines": 2, "learning": learning, "learning_count": 1, "last": END}


def status() -> StatusCollector:
    """A pipeline that has stored three windows, each later than the one before."""
    board = StatusCollector(["extractor", "sink"], live_from=0, delay_ms=5_000)
    stats = Stats(records_in=30, records_out=7, late=2, dead=1, watermark=END, state_bytes=4_000, shard=0, keys=12)
    board.batch(BatchReport("extractor", 1, (stats,), 0.5))
    for latency in LATENCIES:
        board.sink(SinkReport(5, SinkOutcome(5, times=(END,), searchable_at_ms=END + latency), 0.1))
    return board


def clock(ms: int) -> str:
    """The time of day by the clock of the reader, who lives half an hour off the hours of UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, ZoneInfo('Asia/Kolkata')):%H:%M:%S}"


@pytest.fixture(scope="module")
def console(endpoints: Any) -> Iterator[WebServer]:
    board = status()
    with stored_site(endpoints.elasticsearch_url, DOCUMENTS, []) as store:
        server = serve(create_app(store, lambda: board.status({"extractor": 4}, []).to_dict(), beliefs=Quiet()), port=0)
        yield server
        server.stop()


@pytest.fixture
def page(browser: Browser, console: WebServer, request: pytest.FixtureRequest) -> Iterator[Page]:
    with opened(browser, console.url, request, timezone_id="Asia/Kolkata") as page:
        yield page


def test_the_figures_of_a_machine_are_those_of_its_documents_and_of_what_is_believed(page: Page) -> None:
    page.evaluate("link => { location.hash = link; }", f"#machine/{HOST}")
    rows = page.locator("#detail .of-series a")
    expect(rows).to_have_count(4)
    told = {row.split("\n")[1]: row for row in (each.inner_text() for each in rows.all())}
    assert [*told] == ["cpu.util", "mem.used", "net.bytes_sent", "new"], "what goes on is first"
    highest = max(each.record_score for each in DOCUMENTS if each.kind == "anomaly")
    newest = {each.metric: each for each in DOCUMENTS}
    assert told["cpu.util"].startswith(f"{highest:.0f}\n")
    assert f"{100 * (newest['cpu.util'].actual or 0):.2f}\u202f%" in told["cpu.util"]
    assert "usual 42\u202f% to 52\u202f%" in told["cpu.util"]
    assert "in an open incident since " in told["cpu.util"], "its newest window alone is normal"
    assert clock(ONSET) in told["cpu.util"], "by the reader's clock"
    assert "quiet" in told["net.bytes_sent"] and "5.25\u202fMB/s" in told["net.bytes_sent"]
    assert "usual 4\u202fMB/s to 6\u202fMB/s" in told["net.bytes_sent"]
    assert "184.2\u202fGB" in told["mem.used"] and "usual 180\u202fGB to 190\u202fGB" in told["mem.used"]
    assert "learning: 1 of 8 windows" in told["new"]
    detail = page.locator("#detail")
    first, last = (iso(at)[:19].replace("T", " ") for at in (FIRST, END))
    expect(detail).to_contain_text(f"its values from {first} to {last} UTC")
    path = rows.first.locator("svg.spark path").get_attribute("d") or ""
    assert path.startswith("M0.5 ") and path.count("L") > 40, "the small plot fills its width: it begins with the data"


def test_the_overview_says_what_will_be_full_next_and_leads_to_it(page: Page) -> None:
    rows = page.locator("#full a")
    expect(rows).to_have_count(3)
    told = [row.locator("b").inner_text() for row in rows.all()]
    assert told == ["full", "full in 3 to 10 hours (95 %)", "full in 4 hours or more, perhaps never"]
    assert all(f"/{part}" in row.inner_text() for part, row in zip("abc", rows.all(), strict=True))
    rows.nth(1).click()
    page.wait_for_function("() => location.hash.startsWith('#series/')")
    assert quote("disk.used_percent{path=/b}", safe="") in page.evaluate("() => location.hash")


def test_the_figures_of_a_series_are_those_of_its_documents(page: Page) -> None:
    page.evaluate("link => { location.hash = link; }", f"#series/{HOST}/cpu.util")
    detail = page.locator("#detail")
    own = [each for each in DOCUMENTS if each.metric == "cpu.util"]
    first, last = (iso(each.window_end)[:19].replace("T", " ") for each in (own[0], own[-1]))
    expect(detail.locator(".where")).to_have_text(f"{first} to {last} UTC · {len(own)} points")
    expect(detail.locator(".newest")).to_contain_text("71.45\u202f%")
    expect(detail.locator(".newest")).to_contain_text("usual: 42\u202f% to 52\u202f%")
    listed = detail.locator(".onsets.short a")
    novel = [each for each in own if each.kind == "anomaly"]
    expect(listed).to_have_count(len(novel))
    assert [row.split("\n")[-1] for row in listed.all_inner_texts()] == [f"{x.record_score:.0f}" for x in novel[::-1]]
    expect(listed.first).to_contain_text(clock(novel[-1].window_end))
    expect(detail.locator(".earlier")).to_have_count(0)


def test_a_series_that_is_stored_nowhere_has_value_and_band_and_a_new_one_says_how_far_it_is_learned(
    page: Page,
) -> None:
    page.evaluate("link => { location.hash = link; }", f"#series/{HOST}/mem.used")
    detail = page.locator("#detail")
    expect(detail.locator(".newest")).to_contain_text("184.2\u202fGB")
    expect(detail.locator(".newest")).to_contain_text("usual: 180\u202fGB to 190\u202fGB")
    expect(detail.locator(".canvas canvas")).to_be_visible()
    page.evaluate("link => { location.hash = link; }", f"#series/{HOST}/{quote('new')}")
    expect(detail.locator(".newest")).to_contain_text("Still learning: 1 of 8 windows.")
    expect(detail.locator(".legend").first).not_to_contain_text("score")


def test_the_figures_of_health_are_those_that_the_jobs_reported(page: Page, console: WebServer) -> None:
    page.evaluate("() => { location.hash = '#health'; }")
    facts = page.locator("#detail .facts")
    median = statistics.median(LATENCIES) / 1000
    expect(facts).to_contain_text(f"{median:.1f} s (5 s of it wait for late records)")
    expect(facts).to_contain_text(f"{5 * len(LATENCIES)} since this start")
    expect(facts).to_contain_text(iso(END)[:19].replace("T", " "))
    cells = page.locator("#detail tbody tr", has_text="extractor").locator("td").all_inner_texts()
    assert cells[3] == "4", "lag"
    assert cells[9:12] == ["2", "1", "12"], "late, dead letters, keys"
    assert cells[12] == "4 kB"


def test_the_figures_of_the_overview_are_counts_of_documents_and_machines(console: WebServer) -> None:
    found = httpx.get(f"{console.url}/api/novelties", params={"limit": 1}).json()
    assert found["counts"] == dict(Counter(each.kind for each in DOCUMENTS))
    of_host = [each for each in DOCUMENTS if each.entity == HOST]
    least = round(statistics.median(each.record_score for each in of_host)) + 0.5
    chosen = {"limit": 1, "entity": HOST, "min_score": least}
    shown = [each for each in of_host if each.record_score >= least]
    assert 0 < len(shown) < len(of_host)
    counted = httpx.get(f"{console.url}/api/novelties", params=chosen).json()["counts"]
    assert counted == dict(Counter(each.kind for each in shown)), "the chips count what the filters leave"
    site = httpx.get(f"{console.url}/api/site").json()
    assert (site["machines"], site["last"]) == (2, END)
    assert site["last"] <= site["now"] <= time.time() * 1000
    assert httpx.get(f"{console.url}/api/entities").json()["entities"] == [HOST, "web-1"]
