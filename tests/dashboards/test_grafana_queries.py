"""What Grafana asks for each panel, asked of a real Elasticsearch, gives what the documents say."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from elasticsearch import Elasticsearch

from dashboards.grafana.models import dashboards, data_sources
from dashboards.grafana.targets import measures_of
from dashboards.panels import Site
from dashboards.panels.answer import TimeRange
from dashboards.panels.panel import Dashboard, Panel
from dashboards.panels.query import Documents
from tests.dashboards.grafana_requests import annotations, requests
from tests.dashboards.panel_documents import END, START, expected, shown
from tests.dashboards.test_kibana_queries import PANELS, filled  # noqa: F401  a fixture

pytestmark = pytest.mark.servers
Filled = tuple[Elasticsearch, Site, pl.DataFrame]


@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=[f"{d.id} {p.id}" for d, p in PANELS])
def test_a_panel_shows_what_the_documents_say(dashboard: Dashboard, panel: Panel, filled: Filled) -> None:  # noqa: F811
    client, site, documents = filled
    title = f"[{site.alias}] {dashboard.title}"
    asked = requests(dashboards(site), data_sources(site, ""), TimeRange(START, END))
    (one,) = (each for each in asked if (each.dashboard, each.panel) == (title, panel.title))
    rows = one.rows(client.search(index=one.index, body=one.body))
    wanted = expected(panel, documents)
    assert len(wanted) > 0
    if isinstance(panel.query, Documents):
        columns = [name for name in panel.query.columns if name != "@timestamp"]
        assert [int(row["@timestamp"]) for row in rows] == sorted((row["@timestamp"] for row in wanted), reverse=True)
        assert _plain(rows, columns) == _plain(wanted, columns)
        return
    titles = [each.title for each in measures_of(panel)]
    numbers = [str(number) for number in range(1, len(titles) + 1)]
    left_out = {each.title for each in panel.query.measures} - set(titles)
    kept = [{k: v for k, v in row.items() if k not in left_out} for row in wanted]
    same = {key: tuple(pytest.approx(v, rel=0.02) for v in values) for key, values in _table(kept, titles).items()}
    assert _table(rows, numbers) == same


def test_what_a_variable_chooses_is_all_that_its_dashboard_shows(filled: Filled) -> None:  # noqa: F811
    client, site, documents = filled
    chosen = {"machine": '("host-03" OR "host-04")', "metric": '("cpu.user")'}
    asked = requests(dashboards(site), data_sources(site, ""), TimeRange(START, END), chosen)
    (one,) = (each for each in asked if each.panel == "Verdicts by kind")
    rows = one.rows(client.search(index=one.index, body=one.body))
    mine = documents.filter(
        pl.col("host.name").is_in(["host-03", "host-04"]), pl.col("metric") == "cpu.user", pl.col("version") == "v1"
    )
    assert sum(row["1"] for row in rows) == mine.height > 0


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({}, None), ({"machine": '("host-03" OR "host-04")'}, {"host-03", "host-04"}),
        ({"workload": '("shop/cart")'}, {"shop/cart"}),
    ],
)  # fmt: skip
def test_annotations_are_the_changes_of_what_is_chosen_each_drawn_once(
    filled: Filled,  # noqa: F811
    chosen: dict[str, str],
    named: set[str] | None,
) -> None:
    client, site, documents = filled
    done = documents.filter(pl.col("version") == "changes").select("event.id", "globs", "message").to_dicts()
    boards = dashboards(site)
    overview = next(each for each in boards if each["title"].endswith("Overview"))
    asked = annotations(overview, data_sources(site, ""), TimeRange(START, END), chosen)
    drawn = {}
    for name, (index, body) in asked.items():
        hits = client.search(index=index, body=body)["hits"]["hits"]
        assert all(hit["_source"]["message"] and hit["_source"]["@timestamp"] for hit in hits)
        drawn[name] = sorted(hit["_id"] for hit in hits)
    globs, single = [], []
    for each in done:
        names = set(each["globs"])
        if any("*" in name for name in names):
            globs += [each["event.id"]] if "workload" not in chosen or names & (named or set()) else []
        elif not names or named is None or names & named:
            single.append(each["event.id"])
    assert drawn == {"Changes": sorted(single), "Changes of several machines": sorted(globs)}
    assert globs and single
    without = {each["title"].split("] ")[1] for each in boards if not each["annotations"]["list"]}
    assert without == {"Changes", "Jobs", "Scores"}


def _table(rows: list[dict[str, Any]], names: list[str]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """Values of the measures by the keys of the buckets, without buckets in which there is nothing."""
    table = {}
    for row in rows:
        values = tuple(row[name] for name in names)
        if any(value not in (None, 0) for value in values):
            keys = sorted(str(value) for key, value in row.items() if key not in names and value != "all")
            table[tuple(keys)] = values
    return table


def _plain(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    return sorted(
        repr([(name, shown(row.get(name))) for name in columns if shown(row.get(name)) is not None]) for row in rows
    )
