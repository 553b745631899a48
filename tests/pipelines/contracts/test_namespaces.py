"""Pipelines in several namespaces share servers and a state directory, and nothing else."""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from dashboards.console import Store
from deploy.embedded.endpoints import Endpoints
from engine.spec.errors import NewnormalError
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings, load
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.runtime.demo import Inputs

NAMES = ("", "nab.", "nab2.", "a-b.", "novelties.", "logs.", "telemetry.", "2024.")
NOW = int(time.time() * 1000)


def test_each_namespace_has_an_index_of_its_own_and_the_setting_names_it_within() -> None:
    assert load().index == "novelties"
    assert load(namespace="nab.").index == "nab.novelties"
    assert load(namespace="nab.", **{"elasticsearch.index": "verdicts"}).index == "nab.verdicts"
    config = SinkConfig.of(load(namespace="nab."), "http://localhost:1")
    assert (config.index, config.alias) == ("nab.novelties", "nab.novelties")


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(NAMES, 2)))
def test_two_namespaces_share_no_topic_and_no_folder(tmp_path: Path, one: str, other: str) -> None:
    first, second = (load(namespace=name, state_dir=tmp_path) for name in (one, other))
    names = [{settings.topic(name) for name in topics.configs()} for settings in (first, second)]
    assert names[0].isdisjoint(names[1])
    for what in ("checkpoints", "measured"):
        inner, outer = first.folder(what), second.folder(what)
        assert inner != outer
        assert inner not in outer.parents
        assert outer not in inner.parents
    files = [{inputs.truth, inputs.runs.file} for inputs in (Inputs(first, NOW), Inputs(second, NOW))]
    assert files[0].isdisjoint(files[1])


@pytest.mark.parametrize(
    ("name", "telling"),
    [
        ("default.", "checkpoints of no namespace"),
        ("features.", "features.logs"),
        ("novelties-2.", "indices"),
        ("-x.", "small letters"),
    ],
)
def test_a_namespace_that_would_mix_with_another_is_refused_at_the_start(name: str, telling: str) -> None:
    with pytest.raises(NewnormalError, match="namespace") as caught:
        load(namespace=name)
    assert caught.value.code == "SETTING_INVALID"
    assert telling in str(caught.value)


@pytest.fixture
def pair(endpoints: Endpoints, tmp_path: Path) -> Iterator[list[Settings]]:
    """Settings of two namespaces of one installation."""
    index = f"n{uuid.uuid4().hex[:10]}"
    found = [
        endpoints.settings(load(namespace=name, state_dir=tmp_path, **{"elasticsearch.index": index}))
        for name in ("", "nab.")
    ]
    yield found
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        for settings in found:
            for each in client.indices.get_alias(name=settings.index):
                client.indices.delete(index=each)
            client.indices.delete_index_template(name=f"newnormal-{settings.index}")


def novelty(entity: str, at: int) -> SinkDocument:
    tree = {"host.name": entity, "metric": "cpu", "window_start": at - 10_000, "@timestamp": at, "kind": "anomaly"}
    return SinkDocument(json.dumps(tree | {"record_score": 80.0, "probability": 0.01}).encode())


@pytest.mark.servers
def test_what_one_namespace_stores_no_other_one_shows(pair: list[Settings]) -> None:
    for settings in pair:
        url = settings.elasticsearch.url or ""
        sink = Sink(SinkConfig.of(settings, url))
        own = [novelty(f"machine-of-{settings.namespace or 'production'}", at) for at in (NOW, 1_404_172_800_000)]
        assert sink.write(own).indexed == 2
        sink.close()
    for settings in pair:
        store = Store(settings.elasticsearch.url or "", settings.index)
        assert {each["host.name"] for each in store.newest()} == {f"machine-of-{settings.namespace or 'production'}"}
        assert store.counts() == {"anomaly": 2}
        store.close()
