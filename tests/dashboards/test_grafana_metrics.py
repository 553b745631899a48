"""The dashboards for Grafana that ask Prometheus ask for what we serve, in PromQL that means something."""

from __future__ import annotations

import re
import time
import urllib.request
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import promql_parser
import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from dashboards.console.metrics import metrics_text
from dashboards.grafana.models import dashboards
from dashboards.panels import Site
from engine.runtime.shard import Stats
from engine.spark.query import BatchReport
from pipelines.contracts import topics
from pipelines.contracts.settings import NotifySettings, load
from pipelines.jobs.sink.document import IndexedNews, SinkOutcome
from pipelines.jobs.sink.job import SinkReport
from pipelines.notify.figures import ChannelFigures
from pipelines.notify.metrics import MetricsServer
from pipelines.query.view.answers import Answers
from pipelines.query.view.app import create_app
from pipelines.query.view.database import Database
from pipelines.query.view.keys import STATE, names
from pipelines.query.view.part import Part
from pipelines.query.view.progress import Progress, key
from pipelines.query.view.scores.sent import Sent
from pipelines.runtime.status import StatusCollector

BOARDS = [each for each in dashboards(Site()) if each["title"] in ("[novelties] Jobs", "[novelties] Scores")]
PANELS = [panel for board in BOARDS for panel in board["panels"]]
TARGETS = [(panel, target) for panel in PANELS for target in panel["targets"]]


@dataclass
class Asked:
    """What a query asks for: names of metrics that are looked at as they are, and those whose growth is asked."""

    plain: set[str]
    growth: set[str]
    single: bool
    kept: frozenset[str] | None = None
    """The labels that are left; ``None``: all."""

    @classmethod
    def of(cls, target: dict[str, Any]) -> Asked:
        query = promql_parser.parse(target["expr"].replace("$__rate_interval", "1m"))
        growth, all_names, kept = set(), set(), set()

        def visit(node: Any) -> None:
            if isinstance(node, promql_parser.Call):
                assert node.func.name in ("rate", "increase", "delta", "time"), node.func.name
                if node.func.name in ("rate", "increase"):
                    growth.update(each.vector_selector.name for each in node.args)
            if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
                kept.update(node.modifier.labels)
            if isinstance(node, promql_parser.VectorSelector):
                all_names.add(node.name)
            if isinstance(node, promql_parser.MatrixSelector):
                all_names.add(node.vector_selector.name)

        promql_parser.walk(query, visit)
        inner = query.rhs if isinstance(query, promql_parser.BinaryExpr) and "time()" in target["expr"] else query
        single = isinstance(inner, promql_parser.AggregateExpr) and inner.modifier is None
        return cls(all_names - growth, growth, single, frozenset(kept) or None)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, frozenset[str]]]:
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
    families = text_string_to_metric_families(text + scores(tmp_path_factory.mktemp("view")))
    return {s.name: (f.type, frozenset(s.labels)) for f in families for s in f.samples}


def scores(folder: Path) -> str:
    """What a state view serves that knows one series, and pushes."""
    database = Database(folder / "data")
    said = {"host.name": "a", "metric": "b", "@timestamp": 10_000, "kind": "normal", "record_score": 1.0}
    band = {"typical": 1.0, "lower": 0.0, "upper": 2.0}
    place = Progress(watermark=10_000).stored()
    database.write([(STATE + names("a", "b"), orjson.dumps(said | band)), (key(topics.NEWS, 0), place)])
    Sent(until=10_000).write(folder)
    app = create_app(Answers(database, load(), 1, Part()), folder=folder)
    text = TestClient(app, base_url="http://localhost").get("/scores/metrics").text
    database.close()
    return text


@pytest.mark.parametrize(("panel", "target"), TARGETS, ids=lambda each: each.get("title", each.get("refId")))
def test_each_panel_asks_for_metrics_that_are_served(
    panel: dict[str, Any], target: dict[str, Any], served: dict[str, tuple[str, frozenset[str]]]
) -> None:
    asked = Asked.of(target)
    wanted = asked.plain | asked.growth
    assert wanted and wanted <= served.keys()
    assert {served[name][0] for name in asked.growth} <= {"counter"}, "only a counter has a rate"
    assert {served[name][0] for name in asked.plain} <= {"gauge"}, "a counter alone says nothing"


@pytest.mark.parametrize(("panel", "target"), TARGETS, ids=lambda each: each.get("title", each.get("refId")))
def test_a_number_is_one_series_and_lines_are_told_apart_by_their_labels(
    panel: dict[str, Any], target: dict[str, Any], served: dict[str, tuple[str, frozenset[str]]]
) -> None:
    asked = Asked.of(target)
    labels = frozenset().union(*(served[name][1] for name in asked.plain | asked.growth))
    labels = labels if asked.kept is None else asked.kept
    if panel["type"] == "stat":
        assert asked.single or not labels
        return
    legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    assert labels <= legend <= labels | {"exported_job"}
    assert ("exported_job" in legend) == ("job" in labels), "Prometheus renames a label that is its own"


@pytest.mark.parametrize("board", BOARDS, ids=lambda each: each["title"])
def test_the_reader_chooses_the_prometheus_and_no_data_source_of_ours_is_needed(board: dict[str, Any]) -> None:
    variable, *others = board["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")
    used = {
        (each["type"], each["uid"]) for panel in board["panels"] for each in (panel["datasource"], *_sources(panel))
    }
    used |= {(each["datasource"]["type"], each["datasource"]["uid"]) for each in others}
    assert used == {("prometheus", "${" + variable["name"] + "}")}


def test_what_a_query_filters_by_is_a_list_that_the_reader_has(served: dict[str, tuple[str, frozenset[str]]]) -> None:
    for board in BOARDS:
        offered = {each["name"] for each in board["templating"]["list"]}
        for panel in board["panels"]:
            for target in panel["targets"]:
                assert set(re.findall(r"\$(?!__)(\w+)", target["expr"])) <= offered
        for each in board["templating"]["list"][1:]:
            asked = re.fullmatch(r"label_values\((\w+), (\w+)\)", each["query"])
            assert asked and asked[2] in served[asked[1]][1]


@pytest.mark.parametrize("board", BOARDS, ids=lambda each: each["title"])
def test_panels_fill_the_page_without_overlap(board: dict[str, Any]) -> None:
    cells: set[tuple[int, int]] = set()
    panels = board["panels"]
    for panel in panels:
        at = panel["gridPos"]
        mine = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not mine & cells and max(x for x, _ in mine) < 24
        cells |= mine
    rows = {y for _, y in cells}
    assert len(cells) == 24 * len(rows), "no hole"
    assert len({panel["title"] for panel in panels}) == len(panels) and all(panel["description"] for panel in panels)


def _sources(panel: dict[str, Any]) -> list[dict[str, str]]:
    return [target["datasource"] for target in panel["targets"]]
