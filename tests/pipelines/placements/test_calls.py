"""Calls between services from spans: the job `calls` against a plain computation, and what `places` makes of them."""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from engine.columns.partitioning import slots
from engine.formats import columnar
from engine.formats.heartbeat import HEARTBEAT
from engine.runtime.intake import KAFKA
from engine.spec.decoder import Messages
from engine.testing.driven import Driven
from pipelines.contracts import topics
from pipelines.contracts.settings import load
from pipelines.formats.placements.decoder import TracedPlacementsDecoder
from pipelines.formats.placements.facts import Sighting
from pipelines.formats.placements.spans import FEW, MOST_SPANS, SpansDecoder
from pipelines.jobs.calls.job import MOST_WAITING, calls
from pipelines.jobs.calls.logic import WAITS
from tests.pipelines.placements.test_decoder import NAME, RESOURCE, T
from tests.pipelines.placements.test_places import DAY, MINUTE, SLOT, Site, tick

SETTINGS = load(**{"kafka.partitions": 2})
Told = tuple[int, int, int, str, str | None]
"""(trace, span, the span it came from or 0, service, whom it calls by its own word)"""


def spans(*told: Told, at: int = T, as_json: bool = False) -> bytes:
    """One message: the spans of each service are a resource."""
    made = ExportTraceServiceRequest()
    for service in sorted({each[3] for each in told}):
        resource = made.resource_spans.add()
        for key, value in (("k8s.namespace.name", "shop"), ("k8s.deployment.name", service)):
            resource.resource.attributes.add(key=key).value.string_value = value
        held = resource.scope_spans.add().spans
        for trace, span, parent, _, peer in (each for each in told if each[3] == service):
            kind = Span.SPAN_KIND_CLIENT if peer else Span.SPAN_KIND_SERVER
            one = held.add(name="x", kind=kind, end_time_unix_nano=at * 1_000_000)
            one.trace_id, one.span_id = trace.to_bytes(16), span.to_bytes(8)
            one.parent_span_id = parent.to_bytes(8) if parent else b""
            if peer:
                one.attributes.add(key="server.address").value.string_value = peer
    if not as_json:
        return made.SerializeToString()
    tree = json_format.MessageToDict(made)
    for each in (span for r in tree["resourceSpans"] for s in r["scopeSpans"] for span in s["spans"]):
        for name in ("traceId", "spanId", "parentSpanId"):  # OTLP's JSON has them in hexadecimal
            if name in each:
                each[name] = base64.b64decode(each[name]).hex()
    return json.dumps(tree).encode()


class Traces:
    """Runs the job over messages."""

    def __init__(self, shards: int = 1) -> None:
        self.run, self.offset = Driven(calls(SETTINGS), shards), 0

    def send(self, *sent: tuple[int, int, bytes]) -> None:
        rows = []
        for at, partition, value in sent:
            self.offset += 1
            rows.append((value, topics.TRACES_AGENTS, partition, self.offset, at))
        tables = [[row for row in rows if row[2] == p] for p in range(2)]
        made = [pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True)) for row in t], KAFKA) for t in tables]
        self.run.kafka([table for table in made if table.num_rows])

    def end(self) -> set[tuple[str, str]]:
        """What was found when all traces were waited for."""
        last = T + 10 * MINUTE
        self.send(*((last, p, spans((99, 99, 0, "z", None), at=last)) for p in range(2)))
        return {(row["entity"], row["callee"]) for row in self.run.rows}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_span_of_another_service_than_the_one_it_came_from_is_a_call(as_json: bool) -> None:
    traces = Traces()
    traces.send((T, 0, spans((1, 1, 0, "web", None), (1, 2, 1, "web", "cart:8080"), as_json=as_json)))
    traces.send((T + 1, 1, spans((1, 3, 2, "cart", None), (1, 4, 3, "cart", "db-1.example.com"), as_json=as_json)))
    assert traces.end() == {("shop/web", "shop/cart"), ("shop/cart", "db-1.example.com")}


def test_whom_a_client_names_counts_only_if_nobody_answers_by_another_name() -> None:
    traces = Traces()
    traces.send((T, 0, spans((1, 1, 0, "web", "edge.example.com"), (1, 2, 1, "cart", None))))
    traces.send((T, 1, spans((2, 1, 0, "web", "edge.example.com"))))
    assert traces.end() == {("shop/web", "shop/cart"), ("shop/web", "edge.example.com")}


TRACE = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(0, 6), st.sampled_from("abc")), max_size=14
)


@settings(max_examples=60, deadline=None)
@given(TRACE, st.randoms(use_true_random=False), st.sampled_from([1, 2]))
def test_the_order_of_spans_micro_batches_and_shards_change_nothing(
    found: Sequence[tuple[int, int, int, str]], chance: random.Random, shards: int
) -> None:
    told: list[Told] = [(*each, None) for each in {(t, s): (t, s, p, n) for t, s, p, n in found}.values()]
    service = {(trace, span): name for trace, span, _, name, _ in told}
    expected = {
        (f"shop/{service[trace, parent]}", f"shop/{name}")
        for trace, _, parent, name, _ in told
        if service.get((trace, parent), name) != name
    }
    chance.shuffle(told)
    traces = Traces(shards)
    for each in told:
        traces.send((T, chance.randrange(2), spans(each)))
    assert traces.end() == expected


def test_of_a_message_with_very_many_spans_whole_traces_are_taken() -> None:
    many = spans(*((trace, span, span - 1, "web", None) for trace in range(1, 401) for span in (1, 2)))
    rows = SpansDecoder().decode(Messages.of([many])).records.to_pylist()
    kept = {row["trace"] for row in rows}
    assert FEW / 4 < len(rows) <= 2 * FEW and len(rows) == 2 * len(kept), "both spans of each"


@pytest.mark.parametrize("messages", [100, pytest.param(8_000, marks=pytest.mark.slow)])
def test_traces_that_are_invented_within_a_minute_do_not_grow_the_state(
    messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many spans wait for others as the bound says; after a minute there is room for others again."""
    most = 1_000 if messages < MOST_WAITING // FEW else MOST_WAITING
    monkeypatch.setattr("pipelines.jobs.calls.job.MOST_WAITING", most)
    traces, sizes = Traces(), list[int]()
    for n in range(messages):
        at, invented = T + n * MINUTE // messages, [(1000 + n * FEW + i, 1, 0, "web", None) for i in range(FEW)]
        if n % (messages // 50) == 0:
            sent: list[tuple[int, int, bytes]] = []
        sent.append((at, n % 2, spans(*invented, at=at)))
        if n % (messages // 50) == messages // 50 - 1:
            traces.send(*sent)
            sizes.append(sum(len(value) for value in traces.run.states[0].values.values()))
    for at in (T + 3 * MINUTE, T + 5 * MINUTE, T + 7 * MINUTE):
        traces.send(*((at, p, spans((1, 1, 0, "web", None), (1, 2, 1, "cart", None), at=at)) for p in range(2)))
    assert ("shop/web", "shop/cart") in traces.end()
    letters = [letter for letter in traces.run.dead if letter["error.code"] == "TOO_MANY_KEYS"]
    assert sum(letter["records"] for letter in letters) >= messages * FEW - most - FEW
    assert "a new trace and span, such as" in letters[0]["error.message"]
    held = sum(len(value) for value in traces.run.states[0].values.values())
    assert held < 30 * most, "nothing waits any more; a partition knows its keys until the next record"


def test_a_span_without_a_valid_id_calls_nobody_and_is_called_by_nobody() -> None:
    """By OTLP an id has 8 bytes, not all zero: else each span that came from none would have come from that one."""
    made = ExportTraceServiceRequest.FromString(spans((1, 1, 0, "web", None), (1, 2, 0, "cart", None)))
    for wrong in (b"ab", bytes(8), b"123456789"):
        made.resource_spans[0].scope_spans[0].spans[0].span_id = wrong
        made.resource_spans[1].scope_spans[0].spans[0].parent_span_id = wrong
        traces = Traces()
        traces.send((T, 0, made.SerializeToString()))
        assert traces.end() == set(), wrong


def test_a_trace_without_end_costs_what_its_first_spans_cost() -> None:
    """A sender may give all spans one trace id: each message has a bounded part in it, and so has the state."""
    endless = 3 << 32  # its last digits are zero, so it is taken whole from a message with very many spans
    many = [(endless, span, span - 1, ("web", "cart")[span % 2], None) for span in range(1, 20 * MOST_SPANS)]
    assert SpansDecoder().decode(Messages.of([spans(*many)])).records.num_rows <= MOST_SPANS
    traces, began = Traces(), time.process_time()
    for at in range(20):
        traces.send((T, 0, spans(*many[at * MOST_SPANS : (at + 1) * MOST_SPANS])))
    assert traces.end() == {("shop/web", "shop/cart"), ("shop/cart", "shop/web")}
    assert time.process_time() - began < 20


def test_what_is_no_trace_is_a_dead_letter_once() -> None:
    traces = Traces()
    traces.send((T, 0, b"no"), (T, 0, HEARTBEAT), (T, 1, HEARTBEAT))
    assert [each["error.code"] for each in traces.run.dead] == ["FORMAT_UNKNOWN"]


def called(site: Site, *times: int, callee: str = "shop/cart") -> None:
    """What the job `calls` tells `places`."""
    rows: list[dict[str, Any]] = [
        {"entity": "shop/web", "parent": None, "workload": None, "callee": callee, "seen": at, "time": at + WAITS}
        for at in times
    ]
    value = columnar.encode(pa.Table.from_pylist(rows, Sighting.arrow_schema()))
    site.offset += 1
    place = int(slots(pl.Series(["shop/web"]), 2)[0])
    row = (value, topics.CALLS, place, site.offset, max(times) + WAITS)
    site.run.kafka([pa.Table.from_pylist([dict(zip(KAFKA.names, row, strict=True))], KAFKA)])


@pytest.mark.parametrize("as_json", [False, True])
def test_a_site_that_sends_traces_and_nothing_else_of_places_has_its_calls(as_json: bool) -> None:
    site = Site()
    called(site, T, T + SLOT, T + 2 * SLOT)
    for n in range(1, 6):
        at = T + n * MINUTE
        value = spans((n, 1, 0, "web", None), at=at, as_json=as_json)
        site.send(*((at, p, value) for p in range(2)), topic=topics.TRACES_AGENTS)
    rows = [row for row in site.run.rows if row["host.name"] == "shop/web"]
    assert [row["depends_on"] for row in rows] == [["shop/cart"]]


@pytest.mark.parametrize("as_json", [False, True])
def test_resources_of_spans_say_where_a_pod_is(as_json: bool) -> None:
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    for key, value in RESOURCE.items():
        resource.resource.attributes.add(key=key).value.string_value = value
    resource.scope_spans.add().spans.add(name="x", end_time_unix_nano=(T + 12_345) * 1_000_000)
    body = json_format.MessageToJson(made).encode() if as_json else made.SerializeToString()
    decoded = TracedPlacementsDecoder().decode(Messages.of([body, b"no", b""], T + DAY)).records.to_pylist()
    assert [(row["entity"], row["parent"], row["workload"], row["time"]) for row in decoded] == [
        (NAME, "node-1", "shop/cart", T + SLOT)
    ]


def test_a_call_counts_when_it_was_seen_three_times_and_is_forgotten_when_unseen_for_a_day() -> None:
    site = Site()
    called(site, T, T + 1, callee="shop/once")
    called(site, T, T + SLOT, T + 2 * SLOT)
    for n in range(1, 20):
        site.send(*tick(T + n * MINUTE))
    site.send(*tick(T + DAY + MINUTE))
    site.send(*tick(T + DAY + 2 * MINUTE))
    rows = [row for row in site.run.rows if row["host.name"] == "shop/web"]
    assert [row["depends_on"] for row in rows] == [["shop/cart"], []]
