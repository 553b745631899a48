"""The page of rules in a real browser: a rule is tried and saved, a proposal is taken, and then is in force."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from playwright.sync_api import Browser, Locator, Page, expect

from dashboards.console import Store, create_app
from deploy.embedded.endpoints import Endpoints
from pipelines.cli.console_trials import ConsoleTrials
from pipelines.contracts.records import Incident, Label
from pipelines.contracts.records.incident import AffectedSeries
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.query import control_topics
from pipelines.query.operator import Operator
from pipelines.serving.server import WebServer, serve
from tests.browser.pages import PHONE, WIDE, opened
from tests.dashboards.console_documents import incident, novelty

pytestmark = [pytest.mark.servers, pytest.mark.browser, pytest.mark.timeout(300)]

WINDOW, HOUR, DAY = 10_000, 3_600_000, 86_400_000
TODAY = int(time.time() * 1000) // DAY * DAY
PATIENCE = 120_000
"""A trial is a process of its own, and has the lowest priority."""

FALSE = [
    (f"lab-{n % 4}", ("net.in", "net.out")[n % 2], TODAY - (15 - n) * DAY + 2 * HOUR + n * 60_000) for n in range(14)
]
TRUE = [
    *((f"lab-{n}", "cpu", TODAY - (4 + n) * DAY + 2 * HOUR) for n in range(3)),
    *((f"web-{n}", "net.in", TODAY - (4 + n) * DAY + 2 * HOUR) for n in range(3)),
    *((f"lab-{n}", "net.in", TODAY - (4 + n) * DAY + 9 * HOUR) for n in range(3)),
]
TOGETHER = "these 14 false alarms have this in common: metric net.*; machines lab-*; 02:00-03:00 UTC"


@pytest.fixture(scope="module")
def settings(endpoints: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A month with false alarms of one kind, true ones that have all but one thing in common with them, and labels."""
    addresses: dict[str, Any] = {
        "kafka.bootstrap": endpoints.bootstrap, "elasticsearch.url": endpoints.elasticsearch_url,
        "state_dir": str(tmp_path_factory.mktemp("state")),
    }  # fmt: skip
    settings = load(namespace=f"rules{uuid.uuid4().hex[:8]}.", **addresses)
    sink = Sink(SinkConfig.of(settings, endpoints.elasticsearch_url))
    found = [novelty(entity, metric, at + WINDOW, "anomaly", 60.0) for entity, metric, at in [*FALSE, *TRUE]]
    found[len(FALSE) - 1] = found[len(FALSE) - 1].model_copy(update={"record_score": 70.0})
    found[::2] = [each.model_copy(update={"actual": 1.0}) for each in found[::2]]  # not all in one direction
    assert sink.write([SinkDocument(each.to_json()) for each in found]).indexed == len(found)
    sink.close()
    entity, metric, at = FALSE[-1]
    row = AffectedSeries(
        entity=entity, metric=metric, kind="anomaly", since=at, reported=at + WINDOW, end=at + WINDOW,
        record_score=60, change="more",
    )  # fmt: skip
    night = incident(
        "night",
        "resolved",
        60,
        [entity],
        start=at,
        series=[row],
        series_count=1,
        open_series=0,
        end=at + WINDOW,
        updated=at + DAY // 2,
    )
    sink = Sink(SinkConfig.of_incidents(settings, endpoints.elasticsearch_url), Incident)
    assert sink.write([SinkDocument(night.to_json())]).indexed == 1
    sink.close()
    labels = [
        Label(entity=entity, metric=metric, start=at, verdict=verdict, time=at + HOUR)  # type: ignore[arg-type]
        for some, verdict in ((FALSE, "false_alarm"), (TRUE, "true"))
        for entity, metric, at in some
    ]
    control_topics.write(settings, *labels)
    yield settings
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        for alias, index in ((settings.alias, settings.index), (settings.incident_alias, settings.incident_index)):
            client.indices.delete(index=[*client.indices.get_alias(name=alias)])
            client.indices.delete_index_template(name=f"newnormal-{index}")


@pytest.fixture(scope="module")
def console(settings: Settings) -> Iterator[WebServer]:
    store = Store(settings.elasticsearch.url or "", settings.alias, settings.incident_alias)
    given = {"namespace": settings.namespace, "state_dir": str(settings.state_dir)}
    trials = ConsoleTrials(lambda: settings, given)
    server = serve(create_app(store, actions=Operator.of(settings), trials=trials), port=0)
    yield server
    server.stop()
    store.close()


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def page(browser: Browser, console: WebServer, settings: Settings, request: pytest.FixtureRequest) -> Iterator[Page]:
    with opened(browser, f"{console.url}/#rules", request, request.param, refusals=True) as page:
        expect(page.get_by_role("button", name="Try", exact=True)).to_be_visible()
        yield page
        small = "it => it.checkVisibility() && it.getBoundingClientRect().height < 44"
        touched = page.locator("#detail :is(button, input, select)")
        assert request.param == WIDE or not touched.evaluate_all(f"all => all.filter({small}).map(it => it.outerHTML)")
    for rule in control_topics.rules(settings):
        Operator.of(settings).withdraw(rule.id)


def write(page: Page, **fields: str) -> None:
    for label, text in fields.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(text)


def outcome(page: Page) -> Locator:
    return page.locator("#detail .trial")


def in_force(settings: Settings) -> list[tuple[str, str, str, str, bool]]:
    """What the topic of rules says now."""
    now = int(time.time() * 1000)
    return [
        (rule.id, rule.entity, rule.metric, rule.times, rule.skip_result)
        for rule in control_topics.rules_in_force(settings, now) if rule.time <= now
    ]  # fmt: skip


def test_a_rule_is_tried_by_keyboard_and_saved_by_one_tap_more_and_is_then_in_force(
    page: Page, settings: Settings
) -> None:
    write(page, Name="lab nights", Machines="lab-*", Metrics="net.*", Only_at="02:00-03:00")
    page.keyboard.press("Enter")
    result = outcome(page)
    expect(result.get_by_role("heading", name="What it would have done")).to_be_focused(timeout=PATIENCE)
    expect(result).to_contain_text("removed: 14 of 17 alarms (14 windows)")
    expect(result).to_contain_text("0 true alarms lost, 14 false alarms spared, 0 without a label")
    assert result.get_by_role("alert").count() == 0
    expect(result.get_by_role("img", name=re.compile("^Alarms by day, .* 3 stay, 14 are removed"))).to_be_visible()
    examples = result.locator(".examples li")
    assert examples.count() == 10
    hrefs = examples.locator("a").evaluate_all("all => all.map(it => it.getAttribute('href'))")
    assert all(href.startswith(("#series/lab-", "#incident/")) for href in hrefs)
    assert "#incident/night" in hrefs[:2], "the highest score is the first"
    assert in_force(settings) == [], "nothing is saved before it is asked for"
    result.get_by_role("button", name="Save the rule").click()
    expect(result).to_contain_text("Saved: in force from")
    expect(page.get_by_role("group", name="Rule lab nights")).to_be_visible()
    assert in_force(settings) == [("lab nights", "lab-*", "net.*", "02:00-03:00", True)]
    assert [rule.end for rule in control_topics.rules(settings)] == [None], "it lasts until it is removed"
    page.get_by_role("button", name="Remove lab nights").click()
    expect(page.get_by_role("group", name="Rule lab nights")).to_have_count(0)
    assert in_force(settings) == []


def test_a_rule_that_would_hide_a_true_alarm_says_so_before_it_can_be_saved(page: Page, settings: Settings) -> None:
    write(page, Name="all of lab", Machines="lab-*", Metrics="*")
    page.get_by_role("button", name="Try", exact=True).click()
    result = outcome(page)
    expect(result.get_by_role("alert")).to_have_text(
        "It would have hidden 6 alarms that were labelled true.", timeout=PATIENCE
    )
    expect(result.get_by_role("button", name="Save it although it hides 6 true alarms")).to_be_visible()
    expect(result.locator(".examples li").first).to_contain_text("labelled true")
    write(page, Metrics="mem")
    expect(result).to_have_text("The rule has changed: try it again.")
    assert result.get_by_role("button").count() == 0
    assert in_force(settings) == []


def test_a_proposal_is_taken_tried_and_saved_and_is_then_in_force(page: Page, settings: Settings) -> None:
    page.get_by_role("button", name="Propose rules").click()
    proposal = page.locator(".proposals li")
    expect(proposal).to_contain_text(TOGETHER, timeout=PATIENCE)
    proposal.get_by_role("button", name="Take and try").click()
    expect(page.get_by_label("Only at", exact=True)).to_have_value("02:00-03:00")
    result = outcome(page)
    expect(result).to_contain_text("0 true alarms lost, 14 false alarms spared", timeout=PATIENCE)
    result.get_by_role("button", name="Save the rule").click()
    expect(result).to_contain_text("Saved: in force from")
    name = "less metric net.*, machines lab-*, 02:00-03:00 UTC"
    assert in_force(settings) == [(name, "lab-*", "net.*", "02:00-03:00", True)]
    page.get_by_role("button", name="Propose rules").click()
    expect(page.get_by_text("There is no proposal")).to_be_visible(timeout=PATIENCE)


def test_what_cannot_be_tried_is_said_with_its_reason_and_what_no_rule_is_cannot_be_saved(page: Page) -> None:
    write(page, Name="wrong", Metrics="cpu", Only_values_above="5 ms")
    page.get_by_role("button", name="Try", exact=True).click()
    result = outcome(page)
    expect(result).to_contain_text("Not tried: RULE_INVALID: '5 ms' is no limit; accepted:", timeout=PATIENCE)
    assert result.get_by_role("button").count() == 0
    page.evaluate("() => { location.hash = '#rules/lab-1/net.in'; }")
    expect(page.get_by_label("Machines", exact=True)).to_have_value("lab-1")
    expect(page.get_by_label("Metrics", exact=True)).to_have_value("net.in")
    page.get_by_label("Then", exact=True).select_option("report only changes of at least")
    expect(page.get_by_label("Size", exact=True)).to_be_visible()
