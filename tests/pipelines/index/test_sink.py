"""The sink against a real Elasticsearch: nothing lost or doubled, the last revision wins, poison is told apart."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from elasticsearch import Elasticsearch, NotFoundError
from hypothesis import given
from hypothesis import strategies as st

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Features
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.index import Sink, SinkConfig, SinkDocument, SinkOutcome, SinkStoppedError
from pipelines.jobs.index.bulk import Limits
from pipelines.jobs.index.partition import Partition
from pipelines.jobs.index.patience import Backoff

NOW = int(time.time() * 1000)
QUICK = Backoff(first_s=0.02, most_s=0.2)
servers = pytest.mark.servers


def novelty(entity: str, revision: int = 0, at: int = NOW, **fields: Any) -> SinkDocument:
    tree = {
        "host.name": entity, "metric": "cpu.user", "window_start": at - 10_000, "@timestamp": at, "kind": "anomaly",
        "record_score": 80.0, "probability": 0.01, "actual": 1.0, "revision": revision, **fields,
    }  # fmt: skip
    return SinkDocument(json.dumps(tree).encode(), origin=f"novelties/0@{entity}")


class Forwarder:
    """A real TCP forwarder to one port, which can be taken down and can swallow answers.

    Down, its port refuses connections and those that are open break. While ``swallow`` is positive, that many requests
    reach the server, but the connection breaks before the answer: the client cannot know that they were done.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target, self._open, self.swallow = target, set[socket.socket](), 0
        self._listener = self._bind(0)
        self.port = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def down(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in list(self._open):
            self._break(each)

    def up(self) -> None:
        self._listener = self._bind(self.port)

    def _bind(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self._target)
                self._open |= {client, server}
                threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if answers and self.swallow > 0:
                    self.swallow -= 1
                    break
                sink.sendall(data)
        self._break(source)
        self._break(sink)

    def _break(self, one: socket.socket) -> None:
        self._open.discard(one)
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@pytest.fixture
def client(endpoints: Any) -> Iterator[Elasticsearch]:
    with Elasticsearch(endpoints.elasticsearch_url) as client:
        yield client


@pytest.fixture
def config(endpoints: Any, client: Elasticsearch) -> Iterator[SinkConfig]:
    name = f"t{uuid.uuid4().hex[:12]}"
    yield SinkConfig(endpoints.elasticsearch_url, index=name, alias=name, refresh_ms=100, backoff=QUICK)
    for index in client.indices.get(index=f"{name}*", allow_no_indices=True):
        client.indices.delete(index=index)
    with contextlib.suppress(NotFoundError):
        client.indices.delete_index_template(name=f"newnormal-{name}*")


@pytest.fixture
def forwarder(endpoints: Any) -> Iterator[Forwarder]:
    host, port = endpoints.elasticsearch_url.removeprefix("http://").split(":")
    forwarder = Forwarder((host, int(port)))
    yield forwarder
    with contextlib.suppress(OSError):
        forwarder.down()


def stored(client: Elasticsearch, config: SinkConfig) -> dict[str, dict[str, Any]]:
    hits = client.search(index=config.alias, size=10_000, ignore_unavailable=True)["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


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
    second = Sink(replace(config, index=f"{config.index}-v2", alias=None))
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


def in_background(work: Callable[[], SinkOutcome]) -> tuple[threading.Thread, list[Any]]:
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except NewnormalError as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, result


@servers
@pytest.mark.parametrize("opened", [True, False], ids=["after it was used", "before its first use"])
def test_a_server_that_is_down_is_waited_for(
    opened: bool, client: Elasticsearch, config: SinkConfig, forwarder: Forwarder
) -> None:
    sink = Sink(replace(config, url=forwarder.url))
    if opened:
        sink.write([novelty("before")])
    forwarder.down()
    thread, result = in_background(lambda: sink.write([novelty(f"during-{i}") for i in range(30)]))
    thread.join(0.7)
    assert thread.is_alive()
    assert not any("during" in name for name in stored(client, config))
    forwarder.up()
    thread.join(30)
    assert result[0].indexed == 30
    assert len(stored(client, config)) == 30 + opened


@servers
def test_answers_that_are_lost_double_nothing(client: Elasticsearch, config: SinkConfig, forwarder: Forwarder) -> None:
    sink = Sink(replace(config, url=forwarder.url, limits=Limits(documents=10)))
    sink.open()
    forwarder.swallow = 3
    assert sink.write([novelty(f"{i}", i % 3) for i in range(100)]).indexed == 100
    assert forwarder.swallow == 0
    assert len(stored(client, config)) == 100


@servers
def test_a_server_that_comes_back_empty_gets_its_template_again(
    client: Elasticsearch, config: SinkConfig, forwarder: Forwarder
) -> None:
    sink = Sink(replace(config, url=forwarder.url))
    sink.write([novelty("a")])
    forwarder.down()
    client.indices.delete(index=",".join(client.indices.get_alias(name=config.alias or "")))
    client.indices.delete_index_template(name=f"newnormal-{config.index}")
    thread, result = in_background(lambda: sink.write([novelty("b")]))
    thread.join(0.3)
    forwarder.up()
    thread.join(30)
    assert result[0].indexed == 1
    assert len(stored(client, config)) == 1  # through the alias: the new index is in it


@servers
def test_a_full_disk_is_waited_out_without_rejecting_anything(client: Elasticsearch, config: SinkConfig) -> None:
    sink = Sink(config)
    sink.write([novelty("a")])
    block = {"index.blocks.read_only_allow_delete": True}  # what Elasticsearch itself sets when the disk is full
    client.indices.put_settings(index=config.alias, settings=block)
    thread, result = in_background(lambda: sink.write([novelty("b"), novelty("old", at=1_400_000_000_000)]))
    thread.join(0.5)
    assert thread.is_alive()
    client.indices.put_settings(index=config.alias, settings={"index.blocks.read_only_allow_delete": None})
    thread.join(30)
    assert (result[0].indexed, result[0].rejected) == (2, ())


def test_told_to_stop_it_stops_waiting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    stop = threading.Event()
    sink = Sink(SinkConfig(f"http://127.0.0.1:{port}", backoff=QUICK), stop=stop)
    thread, result = in_background(lambda: sink.write([novelty("a")]))
    thread.join(0.3)
    assert thread.is_alive()
    stop.set()
    thread.join(5)
    assert isinstance(result[0], SinkStoppedError)


def test_it_gives_up_when_asked_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    sink = Sink(SinkConfig(f"http://127.0.0.1:{port}", backoff=replace(QUICK, give_up_after_s=0.2)))
    with pytest.raises(NewnormalError, match="ELASTICSEARCH_UNREACHABLE"):
        sink.write([novelty("a")])


@given(st.integers(-(2**53), 2**53), st.integers(0, 4_102_444_800_000))
def test_an_event_time_always_has_the_same_index(at: int, daily_from: int) -> None:
    partition = Partition("novelties", daily_from)
    index = partition.index(at)
    assert (index is None) == (not 0 <= at < 4_102_444_800_000)
    assert index is None or index.startswith(("novelties-1", "novelties-2"))
