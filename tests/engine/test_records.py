"""Records and dead letters survive JSON and Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.formats import columnar
from engine.formats.dead_letters import DeadLetter, payload_text
from pipelines.contracts.records import Features, Telemetry

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
instants = st.integers(-(2**53), 2**53)
kinds = st.sampled_from(["gauge", "counter", "rate", "count", "latency", "ratio"])
telemetry = st.builds(Telemetry, time=instants, entity=texts, metric=texts, value=numbers, kind=kinds)
features = st.builds(
    Features,
    entity=texts,
    metric=texts,
    kind=kinds,
    window_start=instants,
    window_end=instants,
    count=st.integers(0, 2**53),
    **dict.fromkeys(("mean", "std", "min", "max", "last", "p50", "p95", "p99"), numbers),
    rate=st.none() | numbers,
    revision=st.integers(0, 100),
)


@settings(deadline=None, max_examples=50)
@given(record=st.one_of(telemetry, features))
def test_a_record_comes_back_from_json_as_it_was(record: Telemetry | Features) -> None:
    assert type(record).from_json(record.to_json()) == record


@settings(deadline=None, max_examples=50)
@given(records=st.lists(features, max_size=5))
def test_records_come_back_from_the_columnar_log_as_they_were(records: list[Features]) -> None:
    schema = Features.arrow_schema()
    table = pa.Table.from_pylist([r.model_dump() for r in records], schema=schema)
    decoded, _ = columnar.decode(columnar.encode(table), schema)
    assert [Features(**row) for row in decoded.to_pylist()] == records


@settings(deadline=None, max_examples=50)
@given(raw=st.binary(max_size=3000))
def test_any_payload_fits_a_dead_letter(raw: bytes) -> None:
    places = {"time": 0, "job": "j", "code": "C", "reason": "r", "topic": "t", "partition": 0, "offset": 0}
    letter = DeadLetter(**places, payload=payload_text(raw))
    assert DeadLetter.from_json(letter.to_json()) == letter
    assert len(letter.payload) <= 4 * 1024


@pytest.mark.parametrize(
    "changed",
    [{"value": "x"}, {"value": float("nan")}, {"host.name": ""}, {"kind": "zzz"}, {"@timestamp": 2**60}, {"vlaue": 1}],
)
def test_a_wrong_record_is_refused(changed: dict[str, object]) -> None:
    good = {"@timestamp": 1, "host.name": "a", "metric": "m", "value": 1.0}
    Telemetry.model_validate(good)
    with pytest.raises(ValidationError):
        Telemetry.model_validate(good | changed)
