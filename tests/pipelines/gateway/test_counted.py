"""What the gateway counts and writes without decoding it is what the pipeline makes of it, for any request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from pipelines.contracts.records import Telemetry
from pipelines.formats import influx_plain, otlp_plain, remembering
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.catalogue import guess
from pipelines.formats.influx import InfluxDecoder
from pipelines.formats.rules import Rules
from pipelines.gateway.influx import Influx
from pipelines.gateway.otlp import METRICS, Otlp
from pipelines.gateway.protocol import Body, NotTakenError, Protocol, Taken
from tests.pipelines.formats.decoding import decoded
from tests.pipelines.formats.examples_times import NS, T0
from tests.pipelines.formats.otlp_requests import attributes, metrics

INFLUX, OTLP = Influx(Rules()), Otlp(METRICS, Rules())
"""They remember the series of earlier examples, as a gateway does."""
PIPELINE = AnyFormatDecoder(Telemetry)
RANDOM = "0b6c1f2e-0f5a-4b7e-9d3c-1c2d3e4f5a6"
"""A UUID but for its last digit: such labels are folded, and series become one."""


def judged(body: bytes) -> tuple[int, bool]:
    """How many records the pipeline makes of a message, and whether it refuses all of it."""
    found = decoded(PIPELINE, body)
    told = ("TEXT_FIELD", "SAMPLE_TWICE", "LABEL_KEPT")  # docs/input.md: all samples of such a message are used
    return found.records.num_rows, any(code not in told for _, code, _ in found.refused)


def agrees(body: bytes, taken: Taken | None) -> None:
    """Asserts that the gateway wrote what it was given if the pipeline takes all of it, and only what it takes."""
    records, refused = judged(body)
    if records and not refused:
        assert taken
        assert (taken.value, taken.records) == (body, records)
    elif taken and taken.value is not None:
        assert taken.value != body
        assert judged(taken.value) == (taken.records, False)


def taken(protocol: Protocol, body: Body) -> Taken | None:
    try:
        return protocol.take(body)
    except NotTakenError:
        return None


HEADS = st.sampled_from(
    [
        *("cpu,host=a", "cpu,host=b,cpu=0", "mé,host=a", "a=*},host=a", r"my\ m,host=a", "m,host=a,q=*", '"q",host=a'),
        *(f"net,host=a,id={RANDOM}{n}" for n in range(3)),
        *("cpu", "cpu,host", ",host=a", f"{'m' * 420},host=a", f"m,host={'h' * 600}", "#,host=a", "cpu,host=a\t", ""),
    ]
)
FIELDS = st.lists(
    st.sampled_from(
        [
            *("v=1", "v=-1.5", "w=2i", "w=3u", "v=1e3", "f=t", "f=FALSE", f"{'k' * 101}=1", "v=1e999", "v=+.5", "v=5."),
            *('text="a b"', 'text="a\nb"', r'text="a\" b"', 'text=""', r"k\=x=1", "x\x0b=1"),
            *("v=", "v", "=1", "v=NaN", "v=1.5i", "v=1=2", 'text="a', "v=1_0", "v= 1", f"v={'9' * 400}"),
        ]
    ),
    min_size=1,
    max_size=3,
).map(",".join)
STAMPS = st.sampled_from([f" {T0}", f" {T0 + 1}", "", f" {T0}\r", " -1", " 1.5", " 99999999999999999999", " 1 2"])
LINES = st.one_of(
    st.builds("{}{}{}{}".format, HEADS, st.just(" "), FIELDS, STAMPS),
    st.sampled_from(["# why", '# it"s', "", " \t", "\\", '"']),
    st.builds("cpu,host={} v={},w=1 {}".format, st.sampled_from("abc"), st.integers(0, 9), st.just(T0)),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(LINES, min_size=1, max_size=5).map("\n".join))
@example(f"a=*}},host=a v=1,v=1 {T0}")
@example(f"net,host=a,id={RANDOM}0 v=1 {T0}\nnet,host=a,id={RANDOM}1 v=2 {T0}")
@example(" v=-1.5 1 2")
@example(f'my\\ m,host=a v=1,text="a b" {T0}\n \t')
def test_lines_of_influx_are_counted_as_the_pipeline_decodes_them(text: str) -> None:
    body = text.encode()
    found = taken(INFLUX, Body(body, parameters={"precision": "ms"}))
    if found and b"GATEWAY_PRECISION" in found.reply.content:  # which the pipeline cannot know
        assert found.value is not None
        assert judged(found.value) == (found.records, False)
    elif (form := guess(body, Telemetry)) and form.name != INFLUX.name:  # " v=-1.5 1 2" is Graphite
        assert found is None or found.value != body
    elif found or b" -1" not in body:
        agrees(body, found)


NONE: dict[str, list[dict[str, Any]]] = {"dataPoints": []}


def point(values: dict[str, Any], labels: dict[str, str], flags: int) -> dict[str, Any]:
    return {"timeUnixNano": NS, "attributes": attributes(**labels), "flags": flags} | values


POINTS = st.lists(
    st.builds(
        point,
        st.sampled_from(
            [{"asDouble": 0.5}, {"asDouble": 0.0}, {"asInt": "0"}, {"asInt": "-7"}, {"asDouble": "NaN"}, {}]
        ),
        st.sampled_from([{}, {"cpu": "0"}, {"cpu": "1", "mode": "x"}, {"q": "*"}])
        | st.builds(lambda n: {"id": f"{RANDOM}{n}"}, st.integers(0, 2))
        | st.sampled_from([{"x": "y" * size} for size in (400, 520, 3_000)]),
        st.sampled_from([0, 0, 0, 0, 1, 2]),
    ),
    max_size=3,
)
METRICS_GIVEN = st.builds(
    lambda name, form, points: {"name": name, form: {"dataPoints": points}},
    st.sampled_from(["load", "load", "requests", "", "a=*}", "n" * 505, "n" * 513]),
    st.sampled_from(["gauge", "sum"]),
    POINTS,
) | st.sampled_from(
    [
        {"name": "none"},
        {"name": "took", "summary": {"dataPoints": [{"timeUnixNano": NS, "count": 1, "sum": 2}]}},
        {"name": "took", "histogram": {"dataPoints": [{"timeUnixNano": NS, "count": 1}]}},
    ]
)
RESOURCES = st.tuples(
    st.sampled_from([{"host__name": "a"}, {"host__name": "b", "service__name": "shop"}, {"host__name": "a"}])
    | st.sampled_from(
        [{"host__name": "a", "process__pid": "1"}, {"os__type": "linux"}]
        + [{"host__name": "a", "k": "v" * size} for size in (3_000, 17_000)]
    ),
    st.lists(METRICS_GIVEN, max_size=3),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(RESOURCES, min_size=1, max_size=3))
def test_data_points_of_otlp_are_counted_as_the_pipeline_decodes_them(
    resources: list[tuple[dict[str, str], list[dict[str, Any]]]],
) -> None:
    request, bare = ExportMetricsServiceRequest(), 0
    for resource, found in resources:
        request.MergeFrom(metrics(*found, resource=attributes(**resource)))
        points = [
            each for metric in found for form in ("gauge", "sum") for each in metric.get(form, NONE)["dataPoints"]
        ]
        bare += sum(not each["flags"] & 1 and not each.keys() & {"asDouble", "asInt"} for each in points)
    body = request.SerializeToString()
    result = taken(OTLP, Body(body, "application/x-protobuf"))
    agrees(body, result)
    if result and (result.value == body or result.value is None):
        part = ExportMetricsServiceResponse.FromString(result.reply.content).partial_success
        assert part.rejected_data_points == bare


def test_a_known_series_is_refused_where_its_resource_has_no_machine() -> None:
    load = {"name": "load", "gauge": {"dataPoints": [{"timeUnixNano": NS, "asDouble": 1.0}]}}
    good = metrics(load, resource=attributes(host__name="a"))
    bad = metrics(load, resource=attributes(os__type="linux"))
    protocol = Otlp(METRICS, Rules())
    for _ in range(2):
        alone = protocol.take(Body(good.SerializeToString(), "application/x-protobuf"))
        both = ExportMetricsServiceRequest(resource_metrics=[*bad.resource_metrics, *good.resource_metrics])
        part = protocol.take(Body(both.SerializeToString(), "application/x-protobuf"))
        assert (alone.records, part.records) == (1, 1)
        assert part.value == alone.value == good.SerializeToString()
        assert b"MACHINE_UNKNOWN: 1 data points are left out" in part.reply.content


def test_of_a_point_that_is_not_a_number_nothing_is_counted_beside_others() -> None:
    points = [{"timeUnixNano": NS, "asDouble": value} for value in ("NaN", 1.0)]
    request = metrics({"name": "load", "gauge": {"dataPoints": points}})
    assert OTLP.take(Body(request.SerializeToString(), "application/x-protobuf")).records == 1


def test_more_series_than_are_remembered_are_counted_and_the_memory_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remembering, "MOST_BYTES", 6_000)
    monkeypatch.setattr(remembering.BUDGET, "held", 0)
    lines, points = influx_plain.PlainLines(InfluxDecoder()), otlp_plain.PlainPoints(Rules().labels)
    for first in range(0, 100, 5):
        numbers = range(first, first + 5)
        counted = lines.count("\n".join(f"m,host=h{n} v=1 {NS}" for n in numbers).encode())
        assert counted == influx_plain.Counted(5, [int(NS)], b"")
        given = [{"timeUnixNano": NS, "asInt": "1", "attributes": attributes(n=str(n))} for n in numbers]
        request = metrics({"name": "load", "gauge": {"dataPoints": given}}).SerializeToString()
        assert points.count(request) == otlp_plain.Counted(5, 0, b"")
    known = len(lines._plain) + sum(map(len, points._plain.values()))
    assert 0 < known <= 30, "of 200 series, as many as 6,000 bytes hold at 200 bytes and more each"
