"""What Kibana asks for each panel, asked of a real Elasticsearch, gives what the documents say."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from elasticsearch import Elasticsearch, NotFoundError

from dashboards.kibana.requests import requests
from dashboards.kibana.saved_objects import saved_objects
from dashboards.panels import DASHBOARDS, Site
from dashboards.panels.answer import TimeRange
from dashboards.panels.panel import Dashboard, Panel
from dashboards.panels.query import Documents
from deploy.embedded.endpoints import Endpoints
from pipelines.contracts.records import Change, Incident
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from tests.dashboards.panel_documents import (
    END,
    START,
    change_frame,
    changes,
    expected,
    frame,
    incident_frame,
    incidents,
    shown,
    verdicts,
)

PANELS = [(dashboard, panel) for dashboard in DASHBOARDS for panel in dashboard.panels]
pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def filled(endpoints: Endpoints) -> Iterator[tuple[Elasticsearch, Site, pl.DataFrame]]:
    """Two versions of an index with a namespace, written by the sink; the alias shows the first."""
    alias, url = f"site-{uuid.uuid4().hex[:6]}.novelties", endpoints.elasticsearch_url
    parts = []
    with Elasticsearch(url) as client:
        for version, index, machines in (("v1", alias, 24), ("v2", f"{alias}-v2", 8)):
            novelties = verdicts(len(version) + machines, machines, 20)
            sink = Sink(SinkConfig(url, index=index, alias=alias, shown=version == "v1", refresh_ms=200))
            assert sink.write([SinkDocument(each.to_json()) for each in novelties]).indexed == len(novelties)
            parts.append(frame(novelties, version))
        found, theirs = incidents(7, 80), alias.replace("novelties", "incidents")
        sink = Sink(SinkConfig(url, index=theirs, alias=theirs, refresh_ms=200), Incident)
        assert sink.write([SinkDocument(each.to_json()) for each in found]).indexed == len(found)
        parts.append(incident_frame(found))
        done, of_site = changes(9, 60), alias.replace("novelties", "changes")
        sink = Sink(SinkConfig(url, index=of_site, alias=of_site, daily=False, refresh_ms=200), Change)
        assert sink.write([SinkDocument(each.to_json()) for each in done]).indexed == len(done)
        parts.append(change_frame(done))
        client.indices.refresh(index=f"{alias}*,{theirs}*,{of_site}*")
        yield client, Site(alias, ("v1", "v2"), theirs, changes=of_site), pl.concat(parts, how="diagonal_relaxed")
        for index in client.indices.get(index=f"{alias}*,{theirs}*,{of_site}*"):
            client.indices.delete(index=index)
        with contextlib.suppress(NotFoundError):
            client.indices.delete_index_template(name=f"newnormal-{alias.partition('.')[0]}*")


@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=[f"{d.id} {p.id}" for d, p in PANELS])
def test_a_panel_shows_what_the_documents_say(
    dashboard: Dashboard, panel: Panel, filled: tuple[Elasticsearch, Site, pl.DataFrame]
) -> None:
    client, site, documents = filled
    title = f"[{site.alias}] {dashboard.title}"
    (asked,) = (
        each
        for each in requests(saved_objects(site), TimeRange(START, END))
        if (each.dashboard, each.panel) == (title, panel.title)
    )
    rows = asked.rows(client.search(index=asked.index, body=asked.body))
    wanted = expected(panel, documents, short=30_000)
    assert len(wanted) > 0
    if isinstance(panel.query, Documents):
        times = [int(row["@timestamp"]) for row in rows]
        assert times == sorted(times, reverse=True)
        assert _plain([row | {"@timestamp": int(row["@timestamp"])} for row in rows]) == _plain(wanted)
        return
    same = {name: _approximately(value) for name, value in _table(wanted, panel).items()}
    assert _table(rows, panel) == same


@pytest.mark.servers
def test_what_a_control_chooses_is_all_that_its_dashboard_shows(
    filled: tuple[Elasticsearch, Site, pl.DataFrame],
) -> None:
    client, site, documents = filled
    chosen = [{"term": {"host.name": "host-03"}}, {"term": {"metric": "cpu.user"}}]
    asked = list(requests(saved_objects(site), TimeRange(START, END), chosen))
    (judged,) = (each for each in asked if each.panel == "Verdicts by kind")
    rows = judged.rows(client.search(index=judged.index, body=judged.body))
    mine = documents.filter(pl.col("host.name") == "host-03", pl.col("metric") == "cpu.user", pl.col("version") == "v1")
    assert sum(row["documents"] for row in rows) == mine.height > 0


def test_a_machine_that_is_chosen_among_incidents_is_the_machine_of_novelties(
    filled: tuple[Elasticsearch, Site, pl.DataFrame],
) -> None:
    """A click filters by `host.name`, which is in no incident: Elasticsearch finds its machines under this name."""
    client, site, documents = filled
    asked = list(requests(saved_objects(site), TimeRange(START, END), [{"match_phrase": {"host.name": "host-03"}}]))
    (count,) = (each for each in asked if each.dashboard.endswith("Incidents") and each.panel == "Incidents")
    (novel,) = (each for each in asked if each.dashboard.endswith("Machine") and each.panel == "News by kind")
    of = pl.col("machines.entity").list.contains("host-03") & (pl.col("incident.state") != "merged")
    wanted = documents.filter(pl.col("version") == "incidents").filter(of).height
    ((counted,),) = (row.values() for row in count.rows(client.search(index=count.index, body=count.body)))
    assert counted == wanted > 0
    rows = novel.rows(client.search(index=novel.index, body=novel.body))
    assert sum(row["documents"] for row in rows) > 0


def _table(rows: list[dict[str, Any]], panel: Panel) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Values of the measures by the keys of the buckets, without buckets in which there is nothing."""
    assert not isinstance(panel.query, Documents)
    names = [each.title for each in panel.query.measures]
    table = {}
    for row in rows:
        values = tuple(row[name] for name in names)
        if any(value not in (None, 0) for value in values):
            table[tuple(str(row[key]) for key in sorted(row.keys() - set(names)))] = values
    return table


def _approximately(values: tuple[Any, ...]) -> Any:
    return tuple(pytest.approx(value, rel=0.02) if isinstance(value, float) else value for value in values)


def _plain(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted((k, str(shown(v))) for k, v in row.items() if shown(v) is not None)) for row in rows)
