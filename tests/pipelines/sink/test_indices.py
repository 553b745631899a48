"""The index to which a document goes, and the errors for an index that is not as it should be."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from elasticsearch import Elasticsearch
from hypothesis import given
from hypothesis import strategies as st

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Features, Incident
from pipelines.contracts.records.incident import AffectedMachine, AffectedMetric
from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.jobs.sink.partition import Partition
from tests.pipelines.sink.conftest import NOW, novelty, servers, stored


@servers
def test_old_data_go_to_monthly_and_live_data_to_daily_indices_behind_one_alias(
    client: Elasticsearch, config: SinkConfig
) -> None:
    year = [1_388_534_400_000 + day * 86_400_000 for day in range(365)]
    assert Sink(config).write([novelty("old", at=at) for at in [*year, NOW]]).indexed == 366
    names = sorted(client.indices.get_alias(name=config.alias or ""))
    day = time.strftime("%Y.%m.%d", time.gmtime(NOW / 1000))
    assert names == [*(f"{config.index}-2014.{month:02}" for month in range(1, 13)), f"{config.index}-{day}"]
    assert len(stored(client, config)) == 366


@servers
def test_the_partition_is_decided_once_and_the_template_can_be_made_again(
    client: Elasticsearch, config: SinkConfig
) -> None:
    first = Sink(config).open()
    meta = {"managed_by": "newnormal", "daily_from": first.daily_from - 86_400_000}
    body = client.indices.get_index_template(name=f"newnormal-{config.index}")["index_templates"][0]["index_template"]
    client.indices.put_index_template(
        name=f"newnormal-{config.index}", index_patterns=body["index_patterns"], template=body["template"],
        priority=body["priority"], meta=meta,
    )  # fmt: skip
    assert Sink(config).open() == replace(first, daily_from=meta["daily_from"])


@servers
def test_sinks_that_start_at_the_same_time_agree_on_the_partition(config: SinkConfig) -> None:
    with ThreadPoolExecutor(4) as pool:
        partitions = list(pool.map(lambda _: Sink(config).open(), range(4)))
    assert len(set(partitions)) == 1


@servers
def test_another_version_has_its_own_indices_and_mapping(client: Elasticsearch, config: SinkConfig) -> None:
    Sink(config).write([novelty("a")])
    second = Sink(replace(config, index=f"{config.index}-v2", shown=False))
    assert second.write([novelty("a"), novelty("b")]).indexed == 2
    assert len(stored(client, config)) == 1


@servers
def test_other_records_can_be_stored_too(config: SinkConfig) -> None:
    start, end = NOW - 10_000, NOW
    numbers = dict.fromkeys(("mean", "std", "min", "max", "last", "p50", "p95", "p99"), 1.0)
    features = Features(entity="a", metric="m", window_start=start, window_end=end, count=3, **numbers)  # type: ignore[arg-type]
    assert Sink(config, Features).write([SinkDocument(features.to_json())]).indexed == 1


@servers
def test_an_index_in_the_place_of_the_alias_is_named_in_the_error(client: Elasticsearch, config: SinkConfig) -> None:
    client.indices.create(index=config.index)
    with pytest.raises(NewnormalError, match="INDEX_NAME_TAKEN"):
        Sink(config).write([novelty("a")])


@servers
def test_a_field_of_another_type_in_an_index_is_named_in_the_error(client: Elasticsearch, config: SinkConfig) -> None:
    client.indices.create(
        index=f"{config.index}-2014.01", mappings={"properties": {"record_score": {"type": "keyword"}}}
    )
    with pytest.raises(NewnormalError, match=r"(?s)MAPPING_CONFLICT.*record_score"):
        Sink(config).write([novelty("a")])


@servers
def test_machines_of_incidents_are_found_by_the_name_that_novelties_have_also_in_older_indices(
    client: Elasticsearch, config: SinkConfig
) -> None:
    """A filter that is chosen among incidents selects novelties, too; indices of earlier versions had no such name."""
    older = mapping(Incident)
    assert older["properties"].pop("host")["properties"]["name"]["type"] == "alias"
    older["properties"].pop("metric")
    month = time.strftime("%Y.%m.%d", time.gmtime(NOW / 1000))
    client.indices.create(index=f"{config.index}-{month}", mappings=older, aliases={config.alias or "": {}})
    machines = [AffectedMachine(entity=name, since=NOW, series=1, record_score=90) for name in ("a", "b")]
    metrics = [AffectedMetric(metric="cpu", machines=2, record_score=90)]
    incident = Incident(
        id="i", opened=NOW, site="default", status="open", severity="major", severity_score=60, record_score=90,
        start=NOW, updated=NOW, message="two machines", machine_count=2, series_count=2, open_series=2,
        machines=machines, metrics=metrics,
    )  # fmt: skip
    assert Sink(config, Incident).write([SinkDocument(incident.to_json())]).indexed == 1
    client.indices.refresh(index=config.alias or "")
    for found, query in ((1, {"host.name": "b"}), (1, {"metric": "cpu"}), (0, {"host.name": "c"})):
        assert client.count(index=config.alias, query={"term": query})["count"] == found


@given(st.integers(-(2**53), 2**53), st.integers(0, 4_102_444_800_000))
def test_an_event_time_always_has_the_same_index(at: int, daily_from: int) -> None:
    partition = Partition("novelties", daily_from)
    index = partition.index(at)
    assert (index is None) == (not 0 <= at < 4_102_444_800_000)
    assert index is None or index.startswith(("novelties-1", "novelties-2"))
