"""JSON of numbers that belongs to no agent's format, against expectations worked out by hand from the stated rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.contracts.records import Telemetry
from pipelines.contracts.settings import load
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.catalogue import BY_NAME, FORMATS, guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import ARRIVED, decoded, decoder, rows, samples
from tests.pipelines.formats.examples import GOOD
from tests.pipelines.formats.examples_times import T0


def read(message: Any) -> list[tuple[str, str, float]]:
    """(machine, metric, value) of a message of which nothing is refused."""
    return [
        (machine, metric, value) for _, machine, metric, value, _ in samples("flat-json", json.dumps(message).encode())
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"host": "a", "cpu": 0.3, "mem": {"used": 12}}, [("a", "cpu", 0.3), ("a", "mem.used", 12.0)]),
        ({"host": "a", "cpu0.p_cpu": 10}, [("a", "cpu0.p_cpu", 10.0)]),
        ({"up": True, "host": {"name": "a"}, "x": {"y": False}}, [("a", "up", 1.0), ("a", "x.y", 0.0)]),
        ({"host": "a", "m": {"k": "ram", "used": 1}, "n": 2}, [("a", "n", 2.0), ("a", "m.used{m.k=ram}", 1.0)]),
        ({"host": "a", "load": [1, 0.5]}, [("a", "load.0", 1.0), ("a", "load.1", 0.5)]),
        (
            {"host": "a", "d": [{"n": "x", "u": 1}, {"n": "y", "u": 2}]},
            [("a", "d.u{d.n=x}", 1.0), ("a", "d.u{d.n=y}", 2.0)],
        ),
        ({"tags": {"host": "a", "shard": 3}, "n": 1}, [("a", "n{shard=3}", 1.0)]),
        ({"metric": "cpu", "value": 3, "host": "a", "unit": "ms"}, [("a", "cpu{unit=ms}", 3.0)]),
        ({"keyspace": "s.h", "value": "123", "timestamp": 1795220820, "tags": {"host": "a"}}, [("a", "s.h", 123.0)]),
        ([{"host": "a", "n": 1}, {"host": "b", "n": 2}], [("a", "n", 1.0), ("b", "n", 2.0)]),
        ({"host": "a", "n": 1, "none": None, "built": "2026-11-21T00:27:00Z", "dc": "x"}, [("a", "n", 1.0)]),
    ],
)  # fmt: skip
def test_numbers_are_named_by_their_path_and_texts_are_labels(
    message: Any, expected: list[tuple[str, str, float]]
) -> None:
    assert read(message) == expected


@pytest.mark.parametrize(
    ("fields", "time"),
    [
        ({"time": T0}, T0),
        ({"@timestamp": "2026-11-21T00:27:00.013Z"}, T0),
        ({"date": T0 / 1000}, T0),
        ({"Timestamp": T0 // 1000}, T0 // 1000 * 1000),
        ({"epoch": 5, "time": T0, "TS": 7}, T0),
        ({"time": None}, ARRIVED),
        ({}, ARRIVED),
    ],
)
def test_the_time_is_the_first_of_the_usual_fields_and_none_of_them_is_a_metric(
    fields: dict[str, Any], time: int
) -> None:
    found = samples("flat-json", json.dumps({"host": "a", "n": 1} | fields).encode())
    assert [(each[0], each[2]) for each in found] == [(time, "n")]


@pytest.mark.parametrize(
    ("message", "code", "why"),
    [
        ({"svc": "b", "n": 1}, "MACHINE_UNKNOWN", "svc"),
        ({"host": "a", "x": "y"}, "MESSAGE_EMPTY", "no number"),
        ({"host": "a", "d": [{"u": 1}, {"u": 2}]}, "FIELD_INVALID", "differ in a text"),
        ({"host": "a", "n": 1, "time": "yesterday"}, "FIELD_INVALID", "yesterday"),
        ({"host": "a", "n": list(range(99))}, "FIELD_INVALID", "list of more than 64"),
        ({"host": "a", "x" * 1100: 1}, "FIELD_INVALID", "1024"),
        ([3], "FIELD_INVALID", "accepted: an object"),
    ],
)
def test_what_is_ambiguous_is_refused_with_what_helps(message: Any, code: str, why: str) -> None:
    ((_, told, reason),) = decoded(decoder("flat-json"), json.dumps(message).encode()).refused
    assert (told, why in reason) == (code, True)


def test_text_that_is_no_label_is_told_beside_the_numbers_unless_it_is_left_out() -> None:
    given = b'{"host":"a","n":1,"sys":{"uptime":"3 days"}}'
    found = decoded(decoder("flat-json"), given)
    assert ([row["metric"] for row in rows(found)], found.refused[0][1]) == (["n"], "TEXT_FIELD")
    left_out = Rules.of(load(**{"input.text_left_out": "sys.uptime"}).input)
    assert decoded(BY_NAME["flat-json"].build(left_out), given).refused == []


def test_the_settings_say_what_counts() -> None:
    rules = Rules.of(load(**{"input.counters": "net.*"}).input)
    found = decoded(BY_NAME["flat-json"].build(rules), b'{"host":"a","net":{"rx":1},"cpu":2}')
    assert {row["metric"]: row["kind"] for row in rows(found)} == {"net.rx": "counter", "cpu": "gauge"}


@pytest.mark.parametrize("name", [form.name for form in FORMATS if form.name != "flat-json"])
def test_no_message_of_another_format_is_taken(name: str) -> None:
    for value in GOOD[name]:
        form = guess(value)
        assert form is not None
        assert form.name != "flat-json"


@pytest.mark.parametrize(
    "value",
    [
        b'{"host":"a","message":"x","level":30}',
        b'{"host":"a","short_message":"x","level":3,"version":"1.1"}',
        b'{"@timestamp":"2026-11-21T00:27:00Z","ecs":{"version":"8"},"host":{"name":"a"},"monitor":{"ms":3}}',
        b'{"resourceSpans":[{"n":1}]}',
        b'"1"', b"[1,2]", b'{"host":"a"}', b"{}",
    ],
)  # fmt: skip
def test_log_lines_and_documents_of_elasticsearch_are_no_metrics(value: bytes) -> None:
    ((_, code, _),) = decoded(AnyFormatDecoder(Telemetry), value).refused
    assert code == "FORMAT_UNKNOWN"
