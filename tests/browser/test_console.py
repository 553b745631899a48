"""The console in a real browser, on a real Elasticsearch, with documents that went through the sink."""

from __future__ import annotations

import math
import random
import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser, Page, expect

from dashboards.console import Store, create_app
from dashboards.status import JobStatus, PipelineStatus
from pipelines.contracts.records import Novelty
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import opened, picture

pytestmark = [pytest.mark.servers, pytest.mark.browser]

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
WINDOW, WINDOWS = 10_000, 200
END = int(time.time() * 1000) // WINDOW * WINDOW
EXPECTED = ["web-1", "web-2", "db-1", HOSTILE]


def series(entity: str, metric: str, level: float, news: dict[int, tuple[str, float]]) -> Iterator[Novelty]:
    """A series with daily rhythm and noise; ``news`` says what happens in which window, and by how much."""
    noise = random.Random(f"{entity} {metric}")
    for i in range(WINDOWS):
        end = END - (WINDOWS - 1 - i) * WINDOW
        typical = level * (1 + 0.12 * math.sin(i / 25))
        kind, shift = news.get(i, ("normal", 0.0))
        actual = typical + noise.gauss(0, level * 0.03) + shift
        novel = kind != "normal"
        yield Novelty(
            entity=entity, metric=metric, window_start=end - WINDOW, window_end=end, kind=kind,
            record_score=min(99.0, 55 + 60 * abs(shift) / level) if novel else noise.uniform(0, 20),
            probability=2e-5 if novel else noise.random(), actual=actual, typical=typical,
            lower=typical - 0.1 * level, upper=typical + 0.1 * level, since=end - WINDOW if novel else None,
            evidence={"value": 12.4, "change_of_level": 4.2, "cpu": 0.3, "cpu.rate": 1.1} if novel else {},
        )  # type: ignore[call-arg]  # fmt: skip


def records() -> list[Novelty]:
    joined = Novelty(
        entity="db-1", metric="_machine", window_start=END - 3 * WINDOW, window_end=END - 2 * WINDOW, kind="anomaly",
        record_score=91.0, probability=1e-4, influencers={"disk.latency": 0.7, "cpu.user": 0.2, "net.rx": 0.1},
    )  # type: ignore[call-arg]  # fmt: skip
    return [
        *series("web-1", "cpu.user", 40.0, {170: ("anomaly", 24.0), 171: ("anomaly", 27.0), 172: ("recovered", 0.5)}),
        *series("web-2", "memory.used{node=0}", 8.1e9, dict.fromkeys(range(192, 194), ("new_normal", 2400000000.0))),
        *series("db-1", "disk.latency", 0.0042, {198: ("anomaly", 0.0031), 150: ("state_change", -0.0009)}),
        *series(HOSTILE, HOSTILE, 12.0, {195: ("anomaly", 3.0)}),
        joined,
    ]


def pipeline() -> dict[str, Any]:
    now = int(time.time() * 1000)
    jobs = (
        JobStatus("normalizer", 2_400_000, 2_399_988, 41_250.0, 0, 12, 340, now - 2_000, 0, 0, 310.0),
        JobStatus("extractor", 2_399_988, 81_000, 40_900.0, 17, 0, 2, now - 4_000, 48_200_000, 10_000, 420.0),
        JobStatus("detector", 81_000, 81_000, 1_350.0, 0, 0, 0, now - 5_000, 96_500_000, 10_000, 510.0),
        JobStatus("sink", 81_000, 81_000, 1_350.0, 0, 0, 0, None, 0, 0, 220.0),
    )
    return PipelineStatus(started=END - 3_600_000, jobs=jobs, latency_ms=1_840.0, indexed=81_000).to_dict()


@pytest.fixture(scope="module")
def console(endpoints: Any) -> Iterator[WebServer]:
    name = f"c{uuid.uuid4().hex[:12]}"
    documents = [SinkDocument(record.to_json()) for record in records()]
    outcome = Sink(SinkConfig(endpoints.elasticsearch_url, index=name, alias=name)).write(documents)
    assert outcome.indexed == len(documents)
    server = serve(create_app(Store(endpoints.elasticsearch_url, name, f"{name}-incidents"), pipeline), port=0)
    yield server
    server.stop()
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        for index in client.indices.get_alias(name=name):
            client.indices.delete(index=index)
        client.indices.delete_index_template(name=f"newnormal-{name}")


@pytest.fixture
def page(browser: Browser, console: WebServer, request: pytest.FixtureRequest) -> Iterator[Page]:
    with opened(browser, console.url, request) as page:
        expect(page.locator("#rows tr").first).to_be_visible()
        yield page


INK = """colour => {
  const canvas = document.querySelector("#detail canvas"), { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const columns = new Set();
  for (let i = 0; i < data.length; i += 4) {
    if (colour.every((value, at) => Math.abs(data[i + at] - value) < 40)) columns.add((i / 4) % width);
  }
  return columns.size / width;
}"""
"""In which share of the columns of the plot there is a pixel of about a colour."""


def machines(page: Page) -> list[str]:
    return page.locator("#rows td:nth-child(2)").all_inner_texts()


def test_it_shows_what_is_novel_newest_first_and_not_what_is_normal(page: Page) -> None:
    expect(page.locator("#rows tr")).to_have_count(9)
    assert set(machines(page)) == set(EXPECTED)
    times = [cell.get_attribute("title") or "" for cell in page.locator("#rows td:nth-child(1)").all()]
    assert all(each.endswith(" UTC") for each in times)
    assert times == sorted(times, reverse=True)
    assert "normal" not in page.locator("#rows .kind").all_inner_texts()
    age, frame = page.locator("thead th").last.bounding_box(), page.locator("#list").bounding_box()
    assert age is not None
    assert frame is not None
    assert age["x"] + age["width"] <= frame["x"] + frame["width"], "all columns fit"
    picture(page, "list")


def test_it_filters_by_kind_machine_and_score(page: Page) -> None:
    page.get_by_role("button", name="anomaly").click()
    expect(page.locator("#rows tr")).to_have_count(4)
    page.get_by_role("button", name="anomaly").click()
    page.locator("#entity").fill("WEB")
    expect(page.locator("#rows tr")).to_have_count(5)
    assert set(machines(page)) == {"web-1", "web-2"}
    page.locator("#score").fill("90")
    expect(page.locator("#rows tr")).to_have_count(2)
    page.locator("#entity").fill("no*such?machine")
    expect(page.locator("#none")).to_be_visible()


def test_a_click_shows_the_series_with_its_band_and_the_reason(page: Page) -> None:
    page.locator("#rows tr", has_text="web-1").filter(has_text="anomaly").first.click()
    detail = page.locator("#detail")
    expect(detail.locator("h2")).to_have_text("Unusual: web-1")
    expect(detail.locator(".canvas[data-marked=anomaly] canvas")).to_have_count(1)
    expect(detail.locator(".legend")).to_contain_text("expected band")
    expect(detail.locator(".words").first).to_contain_text("cpu.user of web-1 is ")
    expect(detail.locator(".words").first).to_contain_text("; usual: ")
    figures = detail.locator("details")
    expect(figures.locator("p").first).not_to_be_visible()
    figures.locator("summary").click()
    expect(figures.locator("p").first).to_be_visible()
    expect(figures).to_contain_text("1 of 50,000 windows")
    expect(detail.locator(".bars dt").first).to_have_text("value")
    band = detail.locator(".u-over").bounding_box()
    assert band is not None
    assert band["width"] > 200
    assert band["height"] > 100
    assert page.evaluate(INK, [20, 86, 140]) > 0.5, "the line of the values is drawn over the band"
    picture(page, "detail")
    detail.locator(".u-over").hover()
    expect(detail.locator(".legend")).to_contain_text("typical")
    detail.get_by_role("button", name="4×").click()
    expect(detail.get_by_role("button", name="4×")).to_have_attribute("aria-pressed", "true")


def test_a_joined_verdict_shows_its_score_and_influencers(page: Page) -> None:
    page.locator("#rows tr", has_text="all metrics").click()
    expect(page.locator("#detail .words").first).to_have_text("db-1 is unusual in disk.latency, cpu.user and net.rx.")
    figures = page.locator("#detail details")
    expect(figures).to_contain_text("Shares: disk.latency 70%, cpu.user 20%, net.rx 10%.")
    expect(figures).to_contain_text("Score 91 of 100.")
    picture(page, "joined")


def test_a_hostile_name_is_shown_as_text_and_does_not_run(page: Page) -> None:
    row = page.locator("#rows tr", has_text="onerror")
    expect(row).to_have_count(1)
    row.click()
    expect(page.locator("#detail h2")).to_contain_text(HOSTILE)
    page.locator("#entity").focus()
    expect(page.locator("#entities option")).to_have_count(4)
    assert page.locator("#list img, #detail img, main script").count() == 0
    picture(page, "hostile")


def test_a_link_opens_the_novelty_it_names(page: Page, console: WebServer) -> None:
    page.locator("#rows tr", has_text="web-2").first.click()
    expect(page.locator("#detail h2")).to_contain_text("web-2")
    link = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#detail h2")).to_contain_text("web-2")


def test_one_word_tells_how_the_pipeline_is_doing_and_leads_to_the_figures_of_its_jobs(page: Page) -> None:
    expect(page.locator("#state")).to_have_text("Running")
    page.locator("#state").click()
    detail = page.locator("#detail")
    expect(detail).to_contain_text("1.8 s")
    expect(detail.locator("tbody tr")).to_have_count(4)
    expect(detail.locator("tbody tr", has_text="normalizer").locator(".bad").last).to_have_text("12")


def test_the_table_says_what_a_verdict_is_in_words_with_its_unit(page: Page) -> None:
    cells = page.locator("#rows tr", has_text="web-1").locator("td.what")
    expect(cells).to_have_text([re.compile("^[\\d.]+$"), *2 * [re.compile("^1\\.[5-9] × the usual$")]])
    joined = page.locator("#rows tr", has_text="all metrics").locator("td.what")
    expect(joined).to_have_text("disk.latency, cpu.user and 1 more together")


def test_it_works_on_a_narrow_dark_screen(browser: Browser, console: WebServer) -> None:
    page = browser.new_page(viewport={"width": 800, "height": 1200}, color_scheme="dark")
    page.goto(console.url)
    page.locator("#rows tr", has_text="web-2").first.click()
    expect(page.locator("#detail .canvas[data-marked] canvas")).to_be_visible()
    picture(page, "dark")
    page.close()


def test_metrics_health_and_headers(console: WebServer) -> None:
    text = httpx.get(f"{console.url}/metrics").text
    assert 'newnormal_job_records_in_total{job="normalizer"} 2.4e+06' in text
    assert "newnormal_latency_seconds 1.84" in text
    assert httpx.get(f"{console.url}/health").json() == {"status": "ok"}
    assert "script-src 'self'" in httpx.get(console.url).headers["content-security-policy"]
    assert httpx.get(f"{console.url}/api/novelties?kind=bogus").status_code == 422
    assert httpx.get(f"{console.url}/api/novelty?id=none").status_code == 404


def test_a_long_series_is_summarised_and_keeps_its_extremes(
    console: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"entity": "web-1", "metric": "cpu.user", "start": END - WINDOWS * WINDOW, "end": END}
    whole = httpx.get(f"{console.url}/api/series", params=query).json()["series"]
    assert len(whole) == WINDOWS
    monkeypatch.setattr("dashboards.console.store.POINTS", 40)
    short = httpx.get(f"{console.url}/api/series", params=query).json()["series"]
    assert 40 <= len(short) <= 41
    for name, extreme in (("record_score", max), ("upper", max), ("lower", min)):
        assert extreme(point[name] for point in short) == extreme(point[name] for point in whole)
    assert [point["@timestamp"] for point in short] == sorted(point["@timestamp"] for point in short)


def test_two_consoles_take_two_ports_and_a_dead_elasticsearch_is_said_so() -> None:
    app = create_app(Store("http://127.0.0.1:9"))
    first = serve(app, port=0)
    second = serve(app, port=int(first.url.rsplit(":", 1)[1]))
    try:
        assert first.url != second.url
        reply = httpx.get(f"{second.url}/health")
        assert (reply.status_code, reply.json()["code"]) == (503, "ELASTICSEARCH_UNREACHABLE")
    finally:
        first.stop()
        second.stop()
