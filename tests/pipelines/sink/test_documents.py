"""Documents in a real Elasticsearch: nothing lost or doubled, the last revision wins, poison is told apart."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from pipelines.contracts.records import Novelty
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.schemas.elasticsearch_mapping import mapping
from pipelines.jobs.sink import Sink, SinkConfig, SinkDocument
from pipelines.jobs.sink.bulk import Limits
from tests.pipelines.sink.conftest import NOW, novelty, servers, stored


@servers
def test_documents_are_searchable_when_write_returns(client: Elasticsearch, config: SinkConfig) -> None:
    sink = Sink(config)
    before = int(time.time() * 1000)
    outcome = sink.write([novelty(f"web-{i}") for i in range(50)])
    assert (outcome.indexed, outcome.superseded, outcome.rejected) == (50, 0, ())
    assert len(stored(client, config)) == 50
    assert outcome.searchable_at_ms is not None
    assert before <= outcome.searchable_at_ms <= time.time() * 1000
    assert outcome.latencies_ms() == [outcome.searchable_at_ms - NOW] * 50


@servers
def test_verdicts_on_a_machine_as_a_whole_are_found_by_a_query_without_quotes(
    client: Elasticsearch, config: SinkConfig
) -> None:
    """The query bar of Kibana and `q=` of Elasticsearch read `*` as "whatever it is"."""
    Sink(config).write([novelty("web-1"), novelty("web-1", metric=JOINED)])
    hits = client.search(index=config.alias, q=f"metric:{JOINED} AND host.name:web-1")["hits"]["hits"]
    assert [hit["_source"]["metric"] for hit in hits] == [JOINED]


@servers
def test_the_same_batch_twice_stores_each_document_once(client: Elasticsearch, config: SinkConfig) -> None:
    batch = [novelty(f"web-{i}") for i in range(20)]
    Sink(config).write(batch)
    outcome = Sink(config).write(batch)  # as after a restart
    assert outcome.indexed == 20
    assert len(stored(client, config)) == 20


@servers
def test_a_higher_revision_wins_whatever_the_order(client: Elasticsearch, config: SinkConfig) -> None:
    sink = Sink(config)
    sink.write([novelty("a", 1, actual=10.0), novelty("b", 0, actual=1.0)])
    outcome = sink.write([novelty("a", 0, actual=9.0), novelty("b", 2, actual=3.0), novelty("b", 1, actual=2.0)])
    assert (outcome.indexed, outcome.superseded) == (1, 2)
    assert {source["host.name"]: source["actual"] for source in stored(client, config).values()} == {
        "a": 10.0,
        "b": 3.0,
    }


@servers
def test_any_interleaving_of_revisions_over_batches_ends_with_the_last(
    client: Elasticsearch, config: SinkConfig
) -> None:
    order = [(entity, revision) for entity in "abcdef" for revision in range(5)] * 2
    random.Random(7).shuffle(order)
    sink = Sink(replace(config, refresh_ms=10))
    for at in range(0, len(order), 7):
        sink.write([novelty(entity, revision, actual=float(revision)) for entity, revision in order[at : at + 7]])
    found = stored(client, config)
    assert len(found) == 6
    assert {source["actual"] for source in found.values()} == {4.0}


@servers
def test_news_is_stored_before_the_quiet_windows_that_came_before_it(client: Elasticsearch, config: SinkConfig) -> None:
    """A sequence number of Elasticsearch says when a document was written; the index has one shard."""
    quiet = [novelty(f"web-{i}", kind="normal", record_score=1.0) for i in range(40)]
    limits = Limits(connections=1, documents=5)
    Sink(replace(config, limits=limits)).write([*quiet, novelty("db-1"), novelty("db-2", kind="absence")])
    hits = client.search(index=config.alias, size=100, seq_no_primary_term=True)["hits"]["hits"]
    written = sorted((hit["_seq_no"], hit["_source"]["host.name"]) for hit in hits)
    assert len(written) == 42
    assert {name for _, name in written[:2]} == {"db-1", "db-2"}


@servers
def test_of_what_is_written_again_in_one_call_the_last_stays_over_all_connections(
    client: Elasticsearch, config: SinkConfig
) -> None:
    """A job that went back to a savepoint writes the same revisions again, perhaps with other values and kinds."""
    sink = Sink(replace(config, limits=Limits(connections=4, documents=5)))
    kinds = ("anomaly", "normal", "recovered", "learning", "normal")  # any of them may be the last of a machine
    again = [novelty(f"m{at % 40}", at // 200, actual=float(at), kind=kinds[at % 7 % 5]) for at in range(600)]
    outcome = sink.write(again)
    assert outcome.rejected == ()
    assert outcome.indexed + outcome.superseded == 600
    found = {source["host.name"]: source["actual"] for source in stored(client, config).values()}
    assert found == {f"m{number}": 560.0 + number for number in range(40)}


@servers
def test_a_document_is_stored_alike_however_its_json_is_written(client: Elasticsearch, config: SinkConfig) -> None:
    tree = json.loads(novelty("plain").raw)
    named = {"entity" if name == "host.name" else name: value for name, value in tree.items()}
    forms = {
        "plain": json.dumps(tree).encode(),
        "lines": json.dumps(tree, indent=1).encode(),
        "space": b"  " + json.dumps(tree).encode() + b" \t",
        "named": json.dumps(named).encode(),
        "text": json.dumps(tree | {"record_score": "80"}).encode(),
        "null": json.dumps(tree | {"event.ingested": None}).encode(),
        "escaped": json.dumps(tree | {"event.ingested": None}).encode().replace(b"event.", b"event\\u002e"),
        "said": json.dumps(tree | {"message": 'what "event.ingested" is'}).encode(),
        "given": json.dumps(tree | {"event.ingested": 5}).encode(),
    }
    documents = [SinkDocument(raw.replace(b'"plain"', f'"{name}"'.encode())) for name, raw in forms.items()]
    before = int(time.time() * 1000)
    assert Sink(config).write(documents).rejected == ()
    found = {source["host.name"]: source for source in stored(client, config).values()}
    assert found.keys() == forms.keys()
    times = {name: source.pop("event.ingested") for name, source in found.items()}
    assert times.pop("given") == 5
    assert all(before <= each <= time.time() * 1000 for each in times.values())
    given = tree.items() - {("host.name", "plain")}
    assert all(given <= {(k, v) for k, v in each.items() if k in tree} for each in found.values())


_EVIDENCE = novelty("x", evidence={"point": 0.5}).raw

POISON: dict[str, tuple[SinkDocument, str]] = {
    "not a number": (SinkDocument(b'{"record_score": NaN}'), "INVALID_JSON"),
    "not text": (SinkDocument(b"\xff\xfe\x00"), "INVALID_JSON"),
    "empty": (SinkDocument(b""), "INVALID_JSON"),
    "half a record": (SinkDocument(b'{"host.name": "a"'), "INVALID_JSON"),
    "no object": (SinkDocument(b"[1]"), "INVALID_RECORD"),
    "unknown field": (novelty("x", typo=1), "INVALID_RECORD"),
    "wrong type": (novelty("x", record_score="high"), "INVALID_RECORD"),
    "infinite score": (SinkDocument(novelty("x").raw.replace(b"80.0", b"1e999")), "INVALID_JSON"),
    "integer beyond 64 bits": (novelty("x", revision=2**70), "INVALID_RECORD"),
    "far future": (novelty("x", at=2**52), "TIME_OUT_OF_RANGE"),
    "not a number among evidence": (SinkDocument(_EVIDENCE.replace(b"0.5", b"NaN")), "INVALID_JSON"),
    "infinite evidence": (SinkDocument(_EVIDENCE.replace(b"0.5", b"1e999")), "INVALID_JSON"),
    "half a character": (SinkDocument(_EVIDENCE.replace(b"point", b"\\ud800")), "INVALID_JSON"),
    "a name twice": (SinkDocument(_EVIDENCE.replace(b"{", b'{"metric": "mem", ', 1)), "DOCUMENT_REFUSED"),
    "nameless evidence": (novelty("x", evidence={"": 1.0}), "DOCUMENT_REFUSED"),
    "negative revision": (novelty("x", revision=-7), "DOCUMENT_REFUSED"),
}  # fmt: skip


@servers
@pytest.mark.parametrize("name", POISON)
def test_poison_among_good_documents_is_rejected_with_a_reason(
    name: str, client: Elasticsearch, config: SinkConfig
) -> None:
    poison, code = POISON[name]
    outcome = Sink(config).write([*(novelty(f"good-{i}") for i in range(5)), poison, novelty("last")])
    assert outcome.indexed == 6
    assert [(rejected.document, rejected.code) for rejected in outcome.rejected] == [(poison, code)]
    assert outcome.rejected[0].reason
    assert len(stored(client, config)) == 6


@servers
def test_any_entity_and_evidence_names_can_stand_side_by_side(client: Elasticsearch, config: SinkConfig) -> None:
    hostile = [
        "<img src=x onerror=alert(1)>",
        "a|b",
        "a%7Cb",
        "…\u202e",
        "x" * 600,
        "-",
        '"',
        "\\",
        "\n",
        "_",
        "💥" * 200,
    ]
    evidence = {"cpu": 1.0, "cpu.user": 2.0, "disk{path=/}": 3.0, "a b": 4.0, "<b>": 5.0, "..": 6.0}
    outcome = Sink(config).write([novelty(name, evidence=evidence) for name in hostile])
    assert outcome.rejected == ()
    found = stored(client, config).values()
    assert {source["host.name"] for source in found} == set(hostile)
    assert all(source["evidence"] == evidence for source in found)


@servers
def test_all_numbers_are_searched_sorted_and_aggregated_in_indices_of_this_and_of_earlier_versions(
    client: Elasticsearch, config: SinkConfig
) -> None:
    """Earlier versions indexed each number; their indices take documents with old and new kinds of evidence, too."""
    older = mapping(Novelty)
    older["dynamic_templates"] = [{"any": {"match": "*", "mapping": {"type": "double"}}}]
    for name in ("actual", "probability"):
        older["properties"][name] = {"type": "double"}
    older["properties"].pop("upper")
    day = time.strftime("%Y.%m.%d", time.gmtime(NOW / 1000))
    client.indices.create(index=f"{config.index}-{day}", mappings=older, aliases={config.alias or "": {}})
    client.index(index=f"{config.index}-{day}", id="0", document=json.loads(novelty("old", evidence={"point": 1}).raw))
    written = {"a": (2.0, NOW), "b": (3.0, NOW), "c": (4.0, NOW - 86_400_000)}
    batch = [
        novelty(name, at=at, evidence={"point": p, "new": p}, actual=p, upper=p) for name, (p, at) in written.items()
    ]
    assert Sink(config).write(batch).indexed == 3
    assert len(client.indices.get_alias(name=config.alias or "")) == 2

    def found(**asked: Any) -> list[str]:
        hits = client.search(index=config.alias, sort=[{"evidence.point": "desc"}], **asked)["hits"]["hits"]
        return [hit["_source"]["host.name"] for hit in hits]

    assert found() == ["c", "b", "a", "old"]
    assert found(q="evidence.point:>=3") == ["c", "b"]
    assert found(query={"range": {"evidence.point": {"lt": 3}}}) == ["a", "old"]
    assert found(query={"term": {"evidence.new": 4}}) == ["c"]
    assert found(query={"exists": {"field": "evidence.new"}}) == ["c", "b", "a"]
    assert found(query={"range": {"actual": {"gt": 2}}}) == found(q="upper:>2") == ["c", "b"]
    caps = client.field_caps(index=config.alias, fields=["evidence.*", "actual", "upper"])["fields"]
    kinds = [kind for name in ("evidence.point", "evidence.new", "actual", "upper") for kind in caps[name].values()]
    assert [(kind["searchable"], kind["aggregatable"]) for kind in kinds] == [(True, True)] * 4  # what Kibana asks
    mean = client.search(index=config.alias, aggs={"mean": {"avg": {"field": "evidence.point"}}}, size=0)
    assert mean["aggregations"]["mean"]["value"] == 2.5


@servers
def test_more_kinds_of_evidence_than_fields_are_stored_all_the_same(client: Elasticsearch, config: SinkConfig) -> None:
    outcome = Sink(config).write(
        [novelty(f"e{i}", influencers={f"metric-{i}-{j}": 1.0 for j in range(60)}) for i in range(40)]
    )
    assert (outcome.indexed, outcome.rejected) == (40, ())


@servers
def test_requests_are_bounded_in_documents_and_bytes(client: Elasticsearch, config: SinkConfig) -> None:
    sink = Sink(replace(config, limits=Limits(documents=7, bytes=2_000)))
    assert sink.write([novelty(f"{i}-{'x' * (i % 5) * 100}") for i in range(100)]).indexed == 100
    assert len(stored(client, config)) == 100


@servers
def test_a_document_too_large_for_a_request_is_rejected_alone(config: SinkConfig) -> None:
    big = novelty("big", influencers={f"{i}-{'m' * 1_000}": 1.0 for i in range(11_000)})
    outcome = Sink(config).write([novelty("a"), big, novelty("b")])
    assert outcome.indexed == 2
    assert [rejected.code for rejected in outcome.rejected] == ["TOO_LARGE"]
