"""The fast reading of messages: what it accepts, pydantic accepts in strict mode with the same values; never more."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.contracts.records import Features, Incident, Label, News, Novelty, SeriesState
from pipelines.jobs.sink.document import SinkDocument
from pipelines.jobs.sink.fast_reading import fast_reader
from pipelines.jobs.sink.identity import UnusableError, document_id, parse, version
from pipelines.jobs.sink.partition import Partition
from pipelines.jobs.sink.sink import Sink, SinkConfig

VERDICT = {
    "host.name": "web-1", "metric": "cpu", "metric_kind": "gauge", "window_start": 1_700_000_000_000,
    "@timestamp": 1_700_000_010_000, "kind": "anomaly", "record_score": 91.5, "state_score": 62.5, "probability": 1e-7,
    "actual": 97.0, "typical": None, "evidence": {"point": 9.1}, "influencers": {}, "rules": ["quiet"], "revision": 0,
    "since": 1_700_000_000_000, "incident.state": "open", "message": "grün 𝕏",
}  # fmt: skip

READ = fast_reader(Novelty)
NAMES = [info.alias or name for name, info in Novelty.model_fields.items()]
HOSTILE = [
    "1e999", "NaN", "Infinity", "-0", "1.0", "1e2", "01", "true", "null", '"1"', "[]", "{}", "[1]", '{"a":"b"}',
    "18446744073709551616", "9223372036854775808", "9007199254740993", "-9007199254740993", "1" * 400, '"\\ud800"',
    '"\\u0000"', '"a\\u2028b"', '"normal"', '"Normal"', '"open"', "-1", "101", '{"a":1}', '{"a":true}', '{"a":NaN}',
    '["a",1]', '{"a":1,"a":2}', '{"\\udc00":1}', "1_000", "'a'", '"', "", "9" * 5_000, '"\x7f"', '"\t"',
]  # fmt: skip
"""JSON, or nearly, that stands in the place of a value."""


def as_pydantic(raw: bytes) -> tuple[Novelty, bool] | None:
    try:
        return parse(raw, Novelty)  # type: ignore[return-value]
    except UnusableError:
        return None


def check(raw: bytes) -> bool:
    """Checks that the fast reading accepts no more than pydantic; returns whether it accepts the bytes."""
    assert READ is not None
    try:
        fast = READ(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    slow = as_pydantic(raw)
    assert slow is not None, raw
    record, as_it_is = slow
    assert as_it_is or b"\n" in raw or b"\r" in raw
    for name in Novelty.model_fields:
        value = getattr(fast, name)
        assert (None if value is msgspec.UNSET else value) == getattr(record, name), name
        assert (value is msgspec.UNSET) <= (name not in record.model_fields_set)
    assert (document_id(fast), version(fast)) == (document_id(record), version(record))
    return True


def text(values: dict[str, str]) -> bytes:
    return ("{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in values.items()) + "}").encode(
        "utf-8", "surrogatepass"
    )


GIVEN = {name: json.dumps(value) for name, value in VERDICT.items()}


def test_an_ordinary_verdict_is_read_fast() -> None:
    assert check(orjson.dumps(VERDICT))
    assert check(Novelty.model_validate(VERDICT).to_json())


@pytest.mark.parametrize("name", NAMES)
def test_of_hostile_values_the_fast_reading_accepts_none_that_pydantic_refuses(name: str) -> None:
    refused = [value for value in HOSTILE if not check(text(GIVEN | {name: value}))]
    assert {"NaN", "1e999", '"\\ud800"', "01", "", "1_000"} <= {*refused}


letters = st.text('a \x00\ud800é𝕏"\\\u2028', max_size=4)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | letters,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(letters, inner, max_size=3),
    max_leaves=4,
)
values = st.sampled_from(HOSTILE) | trees.map(json.dumps)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(st.sampled_from([*NAMES, "entity", "window_end", "x"]), values, max_size=3),
    st.sets(st.sampled_from(NAMES), max_size=2),
)
def test_whatever_a_message_holds_both_agree_on_what_the_fast_reading_accepts(
    changed: dict[str, str], left_out: set[str]
) -> None:
    check(text({name: value for name, value in (GIVEN | changed).items() if name not in left_out}))


@settings(deadline=None)
@given(st.integers(0, len(orjson.dumps(VERDICT)) - 1), st.binary(max_size=3))
def test_a_damaged_message_is_read_alike_or_refused(place: int, damage: bytes) -> None:
    raw = orjson.dumps(VERDICT)
    check(raw[:place] + damage + raw[place + len(damage) :])


def test_types_whose_fields_depend_on_each_other_or_are_nested_are_left_to_pydantic() -> None:
    assert [fast_reader(kind) is not None for kind in (Novelty, News, Features, SeriesState, Label, Incident)] == [
        *[True] * 4,
        *[False] * 2,
    ]


@pytest.mark.parametrize("ingested", [{}, {"event.ingested": None}, {"event.ingested": 5}], ids=["none", "null", "5"])
@pytest.mark.parametrize("tail", [b"", b" ", b"\n"], ids=["compact", "space", "line"])
def test_the_time_of_storing_is_added_where_it_is_missing_and_kept_where_it_stands(
    ingested: dict[str, Any], tail: bytes
) -> None:
    now = int(time.time() * 1000)
    sink = Sink(SinkConfig("http://127.0.0.1:1"))  # no request is made
    raw = orjson.dumps(VERDICT | ingested) + tail
    action = sink._action(SinkDocument(raw), Partition("novelties", 0), now)
    sink.close()
    expected = {name: value for name, value in (VERDICT | ingested).items() if value is not None}
    stored = {name: value for name, value in json.loads(action.body).items() if value is not None}
    assert stored == {"event.ingested": now} | expected
    assert action.id == "web-1|cpu|1700000000000|1700000010000"
    assert action.body.count(b"event.ingested") == 1
    assert b"\n" not in action.body
    assert action.news is not None
