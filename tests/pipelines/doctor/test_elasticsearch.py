"""Doctor finds what is wrong in Elasticsearch; each finding is provoked on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from pipelines.contracts.records import Novelty
from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.doctor.context import Context
from pipelines.doctor.elasticsearch.health import disk, health
from pipelines.doctor.elasticsearch.indices import aliases, indices
from pipelines.doctor.finding import Finding
from pipelines.doctor.kafka.clock import elasticsearch_clock
from pipelines.jobs.sink import Sink, SinkConfig
from tests.pipelines.doctor.conftest import Make, now

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


def one(findings: Any) -> Finding:
    (finding,) = findings
    return finding  # type: ignore[no-any-return]


@pytest.fixture
def site(make: Make) -> Iterator[Context]:
    """A pipeline whose sink has made its template; its indices go at the end."""
    context = make()
    sink = Sink(SinkConfig.of(context.settings, context.url))
    sink.open()
    sink.close()
    yield context
    client, name = context.elasticsearch, context.settings.namespace
    for index in client.indices.get(index=f"{name}*", allow_no_indices=True):
        client.indices.delete(index=index)
    client.options(ignore_status=404).indices.delete_index_template(name=f"newnormal-{name}*")


@pytest.fixture
def client(site: Context) -> Elasticsearch:
    return site.elasticsearch


def day(site: Context, version: str = "") -> str:
    """Name of an index of verdicts."""
    return f"{site.settings.index}{version}-2026.11.20"


def test_an_index_that_cannot_be_written_is_named_with_its_block(site: Context, client: Elasticsearch) -> None:
    client.indices.create(index=day(site))
    assert indices(site) == []
    client.indices.put_settings(index=day(site), settings={"index.blocks.read_only_allow_delete": True})
    finding = one(indices(site))
    assert (finding.code, finding.where) == ("INDEX_READ_ONLY", day(site))
    assert "index.blocks.read_only_allow_delete" in finding.what


def test_an_index_with_a_field_of_another_type_is_named_with_the_field(site: Context, client: Elasticsearch) -> None:
    properties = {"record_score": {"type": "keyword"}, "host": {"properties": {"name": {"type": "text"}}}}
    client.indices.delete_index_template(name=f"newnormal-{site.settings.index}")
    client.indices.create(index=day(site), mappings={"properties": properties})
    found = {each.code: each for each in indices(site)}
    assert found.keys() == {"MAPPING_CONFLICT", "TEMPLATE_MISSING"}
    assert found["MAPPING_CONFLICT"].what == (
        "host.name is text, keyword is needed; record_score is keyword, double is needed"
    )


def test_a_template_of_another_release_is_found_with_the_fields(site: Context, client: Elasticsearch) -> None:
    ours = mapping(Novelty)
    other = {**ours["properties"], "old_field": {"type": "long"}}
    del other["record_score"]
    put(client, site, {**ours, "properties": other})
    assert (one(indices(site)).code, one(indices(site)).what) == ("TEMPLATE_OUTDATED", "old_field")
    del other["old_field"]
    put(client, site, {**ours, "properties": other})
    assert (one(indices(site)).code, one(indices(site)).what) == ("TEMPLATE_OUTDATED", "lacks record_score")


def put(client: Elasticsearch, site: Context, mappings: dict[str, Any]) -> None:
    name = site.settings.index
    client.indices.put_index_template(
        name=f"newnormal-{name}", index_patterns=[f"{name}-2*"], priority=500, template={"mappings": mappings}
    )


def test_an_alias_must_show_one_version(site: Context, client: Elasticsearch) -> None:
    alias = site.settings.alias
    assert aliases(site) == []
    client.indices.create(index=day(site))
    assert aliases(site) == [], "the index joined the alias by its template"
    client.indices.create(index=day(site, "-v2"))
    client.indices.put_alias(index=day(site, "-v2"), name=alias)
    several = one(aliases(site))
    assert (several.code, several.where) == ("ALIAS_SHOWS_SEVERAL", alias)
    assert several.what == f"it shows indices of {alias}, {alias}-v2"
    client.indices.delete_alias(index=f"{alias}-*", name=alias)
    empty = one(aliases(site))
    assert (empty.code, day(site) in empty.what) == ("ALIAS_EMPTY", True)


def test_an_index_with_the_name_of_the_alias_is_found(site: Context, client: Elasticsearch) -> None:
    client.indices.create(index=site.settings.alias)
    finding = one(aliases(site))
    assert (finding.code, finding.where) == ("INDEX_NAME_TAKEN", site.settings.alias)


def test_a_shard_without_a_node_is_found_with_elasticsearchs_reason(site: Context, client: Elasticsearch) -> None:
    name = day(site)
    assert health(site) == []
    client.indices.create(index=name, settings={"number_of_replicas": 1}, wait_for_active_shards=1)
    yellow = one(health(site))
    assert (yellow.code, name in yellow.what) == ("ELASTICSEARCH_YELLOW", True)
    assert "already allocated to this" in yellow.what
    client.indices.delete(index=name)
    nowhere = {"index.routing.allocation.require._name": "no-such-node"}
    client.indices.create(index=name, settings=nowhere, wait_for_active_shards=0)
    red = one(health(site))
    client.indices.delete(index=name)
    assert (red.code, name in red.what, "no-such-node" in red.what) == ("ELASTICSEARCH_RED", True, True)


def test_a_node_with_less_free_disk_than_its_flood_stage_is_found(site: Context, client: Elasticsearch) -> None:
    watermark = "cluster.routing.allocation.disk.watermark."
    names = [watermark + each for each in ("low", "high", "flood_stage")]
    try:
        client.cluster.put_settings(persistent=dict.fromkeys(names, "1b"))
        assert disk(site) == []
        client.cluster.put_settings(persistent=dict.fromkeys(names, "900tb"))
        finding = one(disk(site))
        client.cluster.put_settings(persistent=dict.fromkeys(names, "1b"))
        assert disk(site) == []
    finally:
        client.cluster.put_settings(persistent=dict.fromkeys(names))
    assert finding.code == "ELASTICSEARCH_DISK"
    assert "the flood stage 900tb" in finding.what
    assert "that protection is off" in finding.what, "as the embedded node's file says"


@pytest.mark.parametrize(("off", "word"), [(-3_600_000, "after"), (3_600_000, "before")])
def test_a_clock_an_hour_off_is_found(make: Make, off: int, word: str) -> None:
    finding = one(elasticsearch_clock(make(lambda: now() + off)))
    assert (finding.code, f"1 h {word} that of this machine" in finding.what) == ("CLOCK_OFF", True)
    assert elasticsearch_clock(make()) == []
