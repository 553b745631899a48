"""What reports of changes become, form by form: what a specification allows is taken, a wrong one refused alone.

The boundaries are those of CloudEvents 1.0.2 (JSON format, HTTP binding), RFC 3339, Grafana's HTTP API (which swaps a
`timeEnd` that lies before `time`), and Kubernetes' API.
"""

from __future__ import annotations

import base64
import time
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.spec.errors import REGISTRY
from pipelines.contracts.records import Change
from pipelines.contracts.settings import Settings
from pipelines.gateway.changes import MOST, Changes
from pipelines.gateway.protocol import Body, NotTakenError

AT, AT_MS = "2026-11-20T08:30:00Z", 1_795_163_400_000
EVENT = {"specversion": "1.0", "id": "1", "source": "ci", "type": "deploy", "time": AT}
HEADERS = {**EVENT, "id": "7"}
JSON, STRUCTURED = "application/json", "application/cloudevents+json; charset=utf-8"


def taken(content: Any, content_type: str = "", headers: dict[str, str] | None = None) -> list[Change]:
    data = content if isinstance(content, bytes) else orjson.dumps(content)
    body = Body(data, content_type, attributes=headers or {})
    return [Change.from_json(each) for each in Changes(Settings(), lambda: AT_MS).take(body).keyed.values()]


def refused(content: Any, content_type: str = "", headers: dict[str, str] | None = None) -> str:
    with pytest.raises(NotTakenError) as found:
        taken(content, content_type, headers)
    return found.value.text


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_data_in_base64_is_read_as_data_are() -> None:
    """CloudEvents' JSON format, section 3.1.1: binary data stand in data_base64."""
    (told,) = taken(EVENT | {"data_base64": encoded('{"message":"cart 1.4","host":"web-1"}')})
    (text,) = taken(EVENT | {"data_base64": encoded("new rack"), "datacontenttype": "text/plain"})
    assert (told.message, told.machines, text.message) == ("cart 1.4", ["web-1"], "new rack")
    assert refused(EVENT | {"data_base64": "###"}).startswith("CHANGE_INVALID: data_base64")
    assert refused(EVENT | {"data_base64": 5}).startswith("CHANGE_INVALID: data_base64")
    assert refused(EVENT | {"data_base64": encoded("{"), "datacontenttype": JSON}).startswith("JSON_MALFORMED")
    assert "65,536" in refused(EVENT | {"data_base64": encoded("[" * 65_537)})


NESTED = b"[" * 1_000 + b"]" * 1_000


@pytest.mark.parametrize(
    "form",
    [
        b'{"event.id":"a","message":"m","@timestamp":%s}',
        b'{"items":[],"kind":%s}',
        b'{"text":"a","tags":[%s]}',
        b'{"reason":%s,"involvedObject":{}}',
    ],
)
def test_what_is_nested_as_deeply_as_json_may_be_is_refused(form: bytes) -> None:
    """As orjson reads it that is 1,024 levels, of which Python can show fewer than 1,000."""
    assert refused(form % NESTED).startswith(("CHANGE_INVALID", "FORMAT_UNKNOWN"))


@pytest.mark.parametrize("version", ["0.3", "2.0", "", 1, None, []])
def test_another_version_of_cloud_events_is_refused_as_its_fields_may_mean_something_else(version: Any) -> None:
    assert refused(EVENT | {"specversion": version}).startswith("CHANGE_INVALID: specversion")


@pytest.mark.parametrize("name", ["id", "source", "type"])
@pytest.mark.parametrize("value", ["", None, [], {}, True])
def test_an_event_without_what_each_must_have_is_refused(name: str, value: Any) -> None:
    assert refused(EVENT | {name: value}).startswith(f"CHANGE_INVALID: {name}")


def test_events_of_two_sources_never_have_one_id() -> None:
    """CloudEvents: source and id together are unique; both may hold slashes."""
    pairs = [("a/b", "c"), ("a", "b/c"), ("a", "b%2Fc"), ("a/b", "%63")]
    assert len(taken([EVENT | {"source": source, "id": name} for source, name in pairs])) == len(pairs)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-11-20t08:30:00z", AT_MS),
        ("2026-11-20T10:30:00.123456789+02:00", AT_MS + 123),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ("2017-01-01T00:59:60.5+01:00", 1_483_228_800_500),
        (None, AT_MS),
    ],
)
def test_times_of_rfc_3339_are_read(text: str | None, ms: int) -> None:
    assert [each.time for each in taken(EVENT | {"time": text})] == [ms]


@pytest.mark.parametrize("host", [{}, {"name": ["web-1"]}, True, [None], [{}], ["web-1", {"name": 5.5}], 1e300])
def test_what_names_no_machine_is_not_taken_for_the_whole_site_or_a_machine_called_none(host: Any) -> None:
    data = {"message": "m", "host": host}
    if host == {}:
        assert taken(EVENT | {"data": data})[0].machines == [], "nothing is nothing"
    else:
        assert refused(EVENT | {"data": data}).startswith("CHANGE_INVALID: host")


def test_a_machine_may_be_an_object_with_a_name_as_in_ecs() -> None:
    hosts = [{"name": "web-1"}, [{"name": "web-1"}], "web-1", ["web-1"]]
    assert [each.machines for host in hosts for each in taken(EVENT | {"data": {"host": host}})] == [["web-1"]] * 4


def test_an_event_in_headers_says_by_its_content_type_what_its_body_is() -> None:
    """The HTTP binding, section 3: the content type alone says whether an event is structured."""
    assert taken(EVENT, STRUCTURED, HEADERS)[0].id == "ci/1"
    assert [each.id for each in taken([EVENT], "application/cloudevents-batch+json", HEADERS)] == ["ci/1"]
    assert taken(b"42", "text/plain", HEADERS)[0].message == "42"
    assert refused(b'{"message":"x","host":"web-1"', JSON, HEADERS).startswith("JSON_MALFORMED")
    assert refused(b'{"message":', "application/vnd.x+json; charset=utf-8", HEADERS).startswith("JSON_MALFORMED")


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion"])
def test_of_an_event_in_headers_it_is_said_which_header_is_missing(name: str) -> None:
    some = {each: text for each, text in HEADERS.items() if each != name}
    assert refused({"message": "x", "host": "web-1"}, JSON, some).startswith(f"CHANGE_INVALID: the header ce-{name}")


def test_an_annotation_ends_as_in_grafana() -> None:
    """Grafana: an end of 0 is none, and one before the beginning is swapped with it."""
    base = {"text": "x", "time": AT_MS}
    ends = [0, None, AT_MS, AT_MS - 5_000, AT_MS + 5_000]
    found = [taken({**base, "timeEnd": end})[0] for end in ends]
    assert [(each.time - AT_MS, each.end and each.end - AT_MS) for each in found] == [
        (0, None), (0, None), (0, None), (-5_000, 0), (0, 5_000),
    ]  # fmt: skip


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_an_annotation_without_text_is_refused_as_grafana_refuses_it(text: str | None) -> None:
    assert refused({"text": text, "time": AT_MS}).startswith("CHANGE_INVALID: message")


@pytest.mark.parametrize(
    "told",
    [
        EVENT | {"data": {"message": "m", "end": "2026-11-20T08:29:59Z"}},
        {"event.id": "a", "message": "m", "@timestamp": AT_MS, "event.end": 0},
    ],
)
def test_what_ended_before_it_began_is_refused(told: dict[str, Any]) -> None:
    assert refused(told).startswith("CHANGE_INVALID: event.end")


@pytest.mark.parametrize("kind", [[], {}, 1, None, "List", "EventList"])
@pytest.mark.parametrize("items", [None, {}, "x", 5])
def test_a_list_of_kubernetes_that_is_none_is_refused(kind: Any, items: Any) -> None:
    assert refused({"kind": kind, "items": items}).startswith("FORMAT_UNKNOWN")


def test_events_that_change_nothing_cost_little_however_many_come() -> None:
    """As many as `input.max_parts` lets through; the bound of a body is 2 s of CPU (docs/bounds.md)."""
    many = Body(orjson.dumps([{"reason": "x", "regarding": {}}] * 62_500))
    begun = time.process_time()
    answer = orjson.loads(Changes(Settings(), lambda: AT_MS).take(many).reply.content)
    assert time.process_time() - begun < 2
    assert (answer["taken"], answer["left_out"], len(answer["reasons"])) == (0, 62_500, 10)


_NAMES = st.sampled_from(
    [
        "specversion",
        "id",
        "source",
        "type",
        "time",
        "data",
        "data_base64",
        "datacontenttype",
        "subject",
        "reason",
        "involvedObject",
        "regarding",
        "metadata",
        "series",
        "count",
        "lastTimestamp",
        "eventTime",
        "kind",
        "items",
        "event.id",
        "message",
        "@timestamp",
        "event.end",
        "event.action",
        "host.name",
        "text",
        "tags",
        "timeEnd",
        "name",
        "host",
        "machines",
        "user",
        "url",
        "end",
        "title",
        "namespace",
        "uid",
        "note",
        "dashboardUID",
        "panelId",
    ]
)
_TEXTS = st.sampled_from(
    f"1.0;{AT};List;Killing;ScaleDown;SuccessfulDelete;Completed;Pod;Node;Deleted pod: *;Stopping container;web-*;;"
    f"e30=;host:web-1;cordon;\x00;{'9' * 40};{JSON}".split(";")
)
_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | _TEXTS | st.text()
)
_JSON = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=8))
_POD = {"reason": "Killing", "involvedObject": {"kind": "Pod", "name": "a"}, "message": "Stopping"}
_OWN: dict[str, Any] = {"event.id": "a", "message": "m"}
_FORMS = st.sampled_from([EVENT, {"text": "x"}, _POD, _OWN, {"kind": "List", "items": [EVENT]}])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_FORMS, st.dictionaries(_NAMES, _JSON, max_size=5)), max_size=4), st.booleans(), _JSON)
def test_whatever_comes_is_taken_or_refused_with_a_code_and_alone(
    forms: list[tuple[dict[str, Any], dict[str, Any]]], alone: bool, other: Any
) -> None:
    told: Any = [{**form, **more} for form, more in forms]
    told = other if alone else [*told, EVENT | {"id": "the right one"}]
    try:
        data = orjson.dumps(told)
    except TypeError:
        return
    body = Body(data, JSON)
    try:
        found = Changes(Settings(), lambda: AT_MS).take(body)
    except NotTakenError as error:
        assert alone and error.error.code in REGISTRY
        return
    assert alone or b"ci/the right one" in found.keyed
    for name, value in found.keyed.items():
        change = Change.from_json(value)
        assert change.id.encode() == name and (change.end is None or change.end >= change.time)
    assert len(found.keyed) <= MOST
