"""The switch of the read alias from one version to another: no reader sees a gap, a mix or an error."""

from __future__ import annotations

from dataclasses import replace

import pytest
from elasticsearch import Elasticsearch

from pipelines.jobs.sink import Sink, SinkConfig
from pipelines.jobs.sink.read_alias import ReadAlias
from tests.alias_reader import AliasReader
from tests.pipelines.sink.conftest import NOW, novelty, servers

DAY = 86_400_000


@servers
def test_a_reader_never_sees_a_gap_a_mix_or_an_error_while_versions_are_promoted_under_load(
    client: Elasticsearch, config: SinkConfig
) -> None:
    alias = ReadAlias(client, config.alias)
    first, second = Sink(config), Sink(replace(config, index=f"{config.index}-v2", shown=False))
    for sink in (first, second):
        sink.write([novelty("a", at=NOW - 40 * DAY), novelty("a")])
    names = (config.index, f"{config.index}-v2")
    with AliasReader(config.url, config.alias) as reader:
        for turn in range(10):
            mine, other = names if turn % 2 else names[::-1]
            for sink in (first, second):  # new indices, old and coming, just before the switch
                sink.write([novelty(f"m{turn}", at=NOW - turn * 62 * DAY), novelty(f"m{turn}", at=NOW - turn * 1000)])
            alias.move(mine, [other], NOW)
            assert alias.shows(mine)
            assert not alias.shows(other)
    assert not reader.errors
    assert set(reader.seen) == {frozenset({"v1"}), frozenset({"v2"})}


@servers
def test_indices_that_come_later_join_the_alias_of_the_promoted_version_only(
    client: Elasticsearch, config: SinkConfig
) -> None:
    first, second = Sink(config), Sink(replace(config, index=f"{config.index}-v2", shown=False))
    first.write([novelty("a")])
    second.write([novelty("a")])
    ReadAlias(client, config.alias).move(f"{config.index}-v2", [config.index], NOW)
    for sink in (config, replace(config, index=f"{config.index}-v2", shown=False)):
        restarted = Sink(sink)  # its start must not change what the alias shows
        restarted.write([novelty("later", at=NOW + 3 * DAY)])
    shown = ReadAlias(client, config.alias).indices()
    assert len(shown) == 4  # the three days around the promotion, and one more
    assert all(name.startswith(f"{config.index}-v2-") for name in shown)


@servers
def test_the_template_of_the_shown_version_is_made_again_with_the_alias(
    client: Elasticsearch, config: SinkConfig
) -> None:
    v2 = replace(config, index=f"{config.index}-v2", shown=False)
    Sink(config).write([novelty("a")])
    Sink(v2).write([novelty("a")])
    alias = ReadAlias(client, config.alias)
    alias.move(v2.index, [config.index], NOW)
    for base in (config.index, v2.index):
        client.indices.delete_index_template(name=f"newnormal-{base}")
    Sink(config).write([novelty("b", at=NOW + 5 * DAY)])
    Sink(v2).write([novelty("b", at=NOW + 5 * DAY)])
    assert {"-v2-" in name for name in alias.indices()} == {True}


@servers
def test_a_version_without_indices_cannot_be_shown(client: Elasticsearch, config: SinkConfig) -> None:
    Sink(config).write([novelty("a")])
    with pytest.raises(LookupError):
        ReadAlias(client, config.alias).move(f"{config.index}-v3", [config.index], NOW)
    assert ReadAlias(client, config.alias).shows(config.index)
