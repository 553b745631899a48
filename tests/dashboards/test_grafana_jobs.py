"""The dashboard of the jobs for Grafana asks Prometheus for what `/metrics` serves, in PromQL that means something."""

from __future__ import annotations

import re
import time
import urllib.request
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dashboards.console.metrics import metrics_text
from dashboards.grafana.models import dashboards
from dashboards.panels import Site
from engine.runtime.shard import Stats
from engine.spark.query import BatchReport
from pipelines.contracts.settings import NotifySettings
from pipelines.jobs.sink.document import IndexedNews, SinkOutcome
from pipelines.jobs.sink.job import SinkReport
from pipelines.notify.figures import ChannelFigures
from pipelines.notify.metrics import MetricsServer
from pipelines.runtime.status import StatusCollector

(BOARD,) = (each for each in dashboards(Site()) if each["title"] == "[novelties] Jobs")
PANELS = BOARD["panels"]


@dataclass
class Asked:
    """What a query asks for: names of metrics that are looked at as they are, and those whose growth is asked."""

    plain: set[str]
    growth: set[str]
    single: bool

    @classmethod
    def of(cls, panel: dict[str, Any]) -> Asked:
        (target,) = panel["targets"]
        query = promql_parser.parse(target["expr"].replace("$__rate_interval", "1m"))
        growth, all_names = set(), set()

        def visit(node: Any) -> None:
            if isinstance(node, promql_parser.Call):
                assert node.func.name in ("rate", "increase"), node.func.name
                growth.update(each.vector_selector.name for each in node.args)
            if isinstance(node, promql_parser.VectorSelector):
                all_names.add(node.name)
            if isinstance(node, promql_parser.MatrixSelector):
                all_names.add(node.vector_selector.name)

        promql_parser.walk(query, visit)
        single = isinstance(query, promql_parser.AggregateExpr) and query.modifier is None
        return cls(all_names - growth, growth, single)


@pytest.fixture(scope="module")
def served() -> dict[str, tuple[str, frozenset[str]]]:
    """Type and labels of each metric that the console and the notifier of a pipeline that works serve, by name."""
    now = int(time.time() * 1000)
    board = StatusCollector(["extractor", "sink"], live_from=0, delay_ms=0)
    counts = {"records_in": 30, "records_out": 1, "late": 2, "dead": 3, "state_bytes": 100, "keys": 7, "open": 3}
    board.batch(BatchReport("extractor", 1, (Stats(**counts, timers=2, watermark=now, shard=0),), 0.5))
    news = (IndexedNews("db-1", "cpu", "anomaly", now),)
    outcome = SinkOutcome(indexed=1, news=news, times=(now,), searchable_at_ms=now + 900)
    board.sink(SinkReport(1, outcome, 0.1))
    text = metrics_text(lambda: board.status({"extractor": 12, "sink": 0}, []).to_dict()).decode()
    with closing(MetricsServer(lambda: [ChannelFigures("hook", sent=1)], NotifySettings(port=0))) as notifier:
        text += urllib.request.urlopen(notifier.url, timeout=60).read().decode()
    families = text_string_to_metric_families(text)
    return {s.name: (f.type, frozenset(s.labels)) for f in families for s in f.samples}


@pytest.mark.parametrize("panel", PANELS, ids=lambda each: each["title"])
def test_each_panel_asks_for_metrics_that_are_served(
    panel: dict[str, Any], served: dict[str, tuple[str, frozenset[str]]]
) -> None:
    asked = Asked.of(panel)
    names = asked.plain | asked.growth
    assert names and names <= served.keys()
    assert {served[name][0] for name in asked.growth} <= {"counter"}, "only a counter has a rate"
    assert {served[name][0] for name in asked.plain} <= {"gauge"}, "a counter alone says nothing"


@pytest.mark.parametrize("panel", PANELS, ids=lambda each: each["title"])
def test_a_number_is_one_series_and_lines_are_told_apart_by_their_labels(
    panel: dict[str, Any], served: dict[str, tuple[str, frozenset[str]]]
) -> None:
    asked, (target,) = Asked.of(panel), panel["targets"]
    labels = frozenset().union(*(served[name][1] for name in asked.plain | asked.growth))
    if panel["type"] == "stat":
        assert asked.single or not labels
        return
    legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    assert labels <= legend <= labels | {"exported_job"}
    assert ("exported_job" in legend) == ("job" in labels), "Prometheus renames a label that is its own"


def test_the_reader_chooses_the_prometheus_and_no_data_source_of_ours_is_needed() -> None:
    (variable,) = BOARD["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")
    used = {(each["type"], each["uid"]) for panel in PANELS for each in (panel["datasource"], *_sources(panel))}
    assert used == {("prometheus", "${" + variable["name"] + "}")}


def test_panels_fill_the_page_without_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in PANELS:
        at = panel["gridPos"]
        mine = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not mine & cells and max(x for x, _ in mine) < 24
        cells |= mine
    rows = {y for _, y in cells}
    assert len(cells) == 24 * len(rows), "no hole"
    assert len({panel["title"] for panel in PANELS}) == len(PANELS) and all(panel["description"] for panel in PANELS)


def _sources(panel: dict[str, Any]) -> list[dict[str, str]]:
    return [target["datasource"] for target in panel["targets"]]
