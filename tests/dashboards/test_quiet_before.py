"""With `detector.emit = context`, plots show what a series was like before it became novel: asked of Elasticsearch."""

from __future__ import annotations

import contextlib
import itertools
import json
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch, NotFoundError
from fastapi.testclient import TestClient

from dashboards.console import Store, create_app
from dashboards.grafana import models as grafana
from dashboards.kibana.requests import requests as kibana_requests
from dashboards.kibana.saved_objects import saved_objects
from dashboards.panels import DASHBOARDS, Site
from dashboards.panels.answer import Request, TimeRange
from deploy.embedded.endpoints import Endpoints
from engine.runtime.intake import KAFKA
from engine.spec.duration import duration_ms
from engine.testing import Driven
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.jobs.detectors.job import detector
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from tests.dashboards.grafana_requests import requests as grafana_requests
from tests.pipelines.detectors.test_operator import at, features, heartbeats

WINDOWS, ONSET = 420, 180
MOST = 60
"""Windows before the onset that a plot must show."""

pytestmark = pytest.mark.servers


def novelties() -> Iterator[SinkDocument]:
    """What the detector writes: `spike` is novel for three windows, `shift` from the onset on, `quiet` never."""
    settings, rng = load(**{"detector.emit": "context"}), np.random.default_rng(5)
    values = {n: {host: float(rng.normal(50, 3)) for host in ("spike", "shift", "quiet")} for n in range(WINDOWS)}
    for n in range(ONSET, WINDOWS):
        values[n]["shift"] += 100.0
        values[n]["spike"] += 100.0 if n < ONSET + 3 else 0.0
    driven, offset = Driven(detector(settings), 1), itertools.count()
    for first in range(0, WINDOWS, 10):
        entries = [*features({n: values[n] for n in range(first, first + 10)}, first + 10), *heartbeats(at(first + 10))]
        rows = [(value, topic, p, next(offset), time) for topic, p, value, time in entries]
        driven.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in rows], KAFKA)])
    written = settings.writes(topics.NOVELTIES)
    return (SinkDocument(message.value) for _, message in driven.messages if message.topic == written)


@pytest.fixture(scope="module")
def site(endpoints: Endpoints) -> Iterator[tuple[Elasticsearch, Site, str]]:
    name, url = f"q{uuid.uuid4().hex[:10]}", endpoints.elasticsearch_url
    sink = Sink(SinkConfig(url, index=name, alias=name))
    assert sink.write(list(novelties())).indexed > 0
    sink.close()
    with Elasticsearch(url) as client:
        client.indices.refresh(index=f"{name}*")
        yield client, Site(name), url
        for index in client.indices.get(index=f"{name}*"):
            client.indices.delete(index=index)
        with contextlib.suppress(NotFoundError):
            client.indices.delete_index_template(name=f"newnormal-{name}*")


def hits(client: Elasticsearch, site: Site, host: str) -> list[dict[str, Any]]:
    query = {"bool": {"filter": [{"term": {"host.name": host}}, {"term": {"metric": "cpu"}}]}}
    return list(client.search(index=site.alias, query=query, size=1_000, sort="@timestamp")["hits"]["hits"])


def quiet_bars(asked: Request, client: Elasticsearch, time: str) -> list[int]:
    """Beginnings of the bars before the onset in which a plot has a value, an expected value and a band."""
    rows = asked.rows(client.search(index=asked.index, body=asked.body))
    titles = asked.measures.values()
    full = [int(row[time]) for row in rows if all(row[title] is not None for title in titles)]
    return [each for each in full if each <= at(ONSET)]  # a window belongs to the bar that begins with its end


def series_page() -> tuple[str, int]:
    """Title of the dashboard, and the length of the time range with which it opens."""
    (found,) = (each for each in DASHBOARDS if each.id == "series")
    return found.title, duration_ms(found.since.removeprefix("now-"))


@pytest.mark.parametrize("host", ["spike", "shift"])
def test_kibana_draws_each_of_sixty_windows_before_the_onset_in_the_range_with_which_series_opens(
    host: str, site: tuple[Elasticsearch, Site, str]
) -> None:
    client, names, _ = site
    title, length = series_page()
    end = at(ONSET) + length // 2
    chosen = [{"match_phrase": {"host.name": host}}, {"match_phrase": {"metric": "cpu"}}]
    asked = kibana_requests(saved_objects(names), TimeRange(end - length, end), chosen)
    (band,) = (each for each in asked if (each.dashboard, each.panel) == (f"[{names.alias}] {title}", "Value and band"))
    bars = quiet_bars(band, client, "@timestamp")
    assert bars[-MOST:] == [at(n + 1) for n in range(ONSET - MOST, ONSET)]


@pytest.mark.parametrize("host", ["spike", "shift"])
def test_grafana_draws_each_of_sixty_windows_before_the_onset(host: str, site: tuple[Elasticsearch, Site, str]) -> None:
    client, names, _ = site
    title, _ = series_page()
    when = TimeRange(at(ONSET - MOST - 20), at(ONSET + 20))
    chosen = {"machine": f'"{host}"', "metric": '"cpu"'}
    asked = grafana_requests(grafana.dashboards(names), grafana.data_sources(names, ""), when, chosen)
    (band,) = (each for each in asked if (each.dashboard, each.panel) == (f"[{names.alias}] {title}", "Value and band"))
    assert len(quiet_bars(band, client, "@timestamp")[-MOST:]) == MOST


def test_the_console_shows_sixty_windows_before_the_onset_of_every_novelty(
    site: tuple[Elasticsearch, Site, str],
) -> None:
    client, names, url = site
    page = TestClient(create_app(Store(url, names.alias, names.incidents)), base_url="http://localhost")
    news = [each for host in ("spike", "shift") for each in hits(client, names, host) if each["_source"].get("since")]
    assert {"anomaly", "recovered", "new_normal"} <= {each["_source"]["kind"] for each in news}
    for each in news:
        found = page.get("/api/novelty", params={"id": each["_id"]}).json()
        assert found["novelty"]["since"] == at(ONSET), json.dumps(found["novelty"])
        drawn = [point["@timestamp"] for point in found["series"] if point["lower"] is not None]
        before = [time for time in drawn if found["span"][0] <= time <= at(ONSET)]
        assert len(before) >= MOST, (each["_source"]["kind"], len(before))


def test_a_quiet_series_has_nothing_in_elasticsearch(site: tuple[Elasticsearch, Site, str]) -> None:
    client, names, _ = site
    assert hits(client, names, "quiet") == []
    assert len(hits(client, names, "spike")) < WINDOWS / 2
