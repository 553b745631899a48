"""Lines of StatsD and DogStatsD, against expectations worked out by hand from their specifications."""

from __future__ import annotations

import pytest

from pipelines.contracts.records import Log, Telemetry
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.catalogue import guess
from pipelines.formats.statsd import StatsdDecoder
from tests.pipelines.formats.decoding import ARRIVED, decoded, decoder, log_lines, rows, samples

AT = 1_656_581_400_000


def read(text: str) -> list[tuple[str, str, float, str]]:
    """(machine, metric, value, kind) of the samples of a message of which nothing is left out."""
    return [(machine, metric, value, kind) for _, machine, metric, value, kind in samples("statsd", text.encode())]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gorets:1|c|#host:a", [("a", "gorets", 1.0, "count")]),
        ("gorets:1|c|@0.1|#host:a", [("a", "gorets", 10.0, "count")]),
        ("glork:320|ms|@0.1|#host:a", [("a", "glork", 320.0, "latency")]),
        ("song.length:240|h|@0.5|#host:a", [("a", "song.length", 240.0, "latency")]),
        ("dist:2.5|d|#host:a", [("a", "dist", 2.5, "latency")]),
        ("gaugor:333|g|#host:a", [("a", "gaugor", 333.0, "gauge")]),
        ("users.online:1|c|#country:china,host:a", [("a", "users.online{country=china}", 1.0, "count")]),
        ("on:1|c|@0.5|#country:china,canary,host:a", [("a", "on{canary=true,country=china}", 2.0, "count")]),
        ("page.views:1:2:32|d|#host:a", [("a", "page.views", value, "latency") for value in (1.0, 2.0, 32.0)]),
        ("song:24:23|h|@0.5|#host:a|c:83c0a99c0a54", [("a", "song", 24.0, "latency"), ("a", "song", 23.0, "latency")]),
        ("gorets,host=a:1|c:2|c|@0.1", [("a", "gorets", 1.0, "count"), ("a", "gorets", 20.0, "count")]),
        ("users.current,service=payroll,host=a:32|g", [("a", "users.current{service=payroll}", 32.0, "gauge")]),
        ("disk;path=/;host=a:1e3|g", [("a", "disk{path=/}", 1000.0, "gauge")]),
        ("x:1|c|#env:b,env:a,url:http://c,host:a", [("a", "x{env=b,a,url=http://c}", 1.0, "count")]),
        ("x:-3|c|#host:a", [("a", "x", -3.0, "count")]),
    ],
)  # fmt: skip
def test_each_type_of_line_becomes_what_it_means(line: str, expected: list[tuple[str, str, float, str]]) -> None:
    assert read(line) == expected


@pytest.mark.parametrize("line", ["x|g:2|g", "a|b:1|c|#host:a", "x;|g:2|g", "|:|:|:"])
def test_a_bar_in_a_name_refuses_its_line_alone(line: str) -> None:
    found = decoded(decoder("statsd"), f"n:1|c|#host:a\n{line}".encode())
    assert [row["metric"] for row in rows(found)] == ["n"]
    ((_, code, why),) = found.refused
    assert code == "LINE_INVALID"
    assert "line 2" in why


def test_the_time_is_the_timestamp_in_seconds_or_the_arrival() -> None:
    given = b"page.views:15|c|#env:dev,host:a|T1656581400\nx:-3|g|#host:a|T1656581400.25\ny:1|g|#host:a"
    assert [(time, value) for time, _, _, value, _ in samples("statsd", given)] == [
        (AT, 15.0), (AT + 250, -3.0), (ARRIVED, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        ("uniques:765|s|#host:a", "LINE_INVALID", "the size of a set"),
        ("gaugor:-10|g|#host:a", "LINE_INVALID", "a gauge of which a line says a change"),
        ("gaugor:+10|g|#host:a", "LINE_INVALID", "the gateway's port of StatsD"),
        ("x:1|q|#host:a", "LINE_INVALID", "its type"),
        ("x:1|c|@0|#host:a", "LINE_INVALID", "sample rate"),
        ("x:1|c|@x|#host:a", "LINE_INVALID", "sample rate"),
        ("x:1e300|c|@1e-300|#host:a", "LINE_INVALID", "finite"),
        ("x:nan|g|#host:a", "LINE_INVALID", "finite"),
        ("x:1|g|#host:a|Tnow", "LINE_INVALID", "epoch seconds"),
        ("x:1", "LINE_INVALID", "accepted: name:value|type"),
        (":1|c", "LINE_INVALID", "accepted: name:value|type"),
        ("x:1|c", "MACHINE_UNKNOWN", "input.default_machine"),
        ("x:1|c|#env:y", "MACHINE_UNKNOWN", "there are: env"),
        (f"{'x' * 513}:1|c|#host:a", "FIELD_INVALID", "512 characters"),
        ("_e{5,4}:title|text", "TEXT_FIELD", "logs.agents"),
        ("_sc|redis|2", "TEXT_FIELD", "logs.agents"),
    ],
)
def test_a_line_that_cannot_be_used_is_told_with_its_number_and_the_others_are_used(
    line: str, code: str, why: str
) -> None:
    alone = decoded(decoder("statsd"), line.encode())
    assert [each[:2] for each in alone.refused] == [(0, code)]
    assert rows(alone) == []
    beside = decoded(decoder("statsd"), f"a:1|c|#host:a\n\n{line}\nb:2|c|#host:a".encode())
    assert [(row["metric"], row["value"]) for row in rows(beside)] == [("a", 1.0), ("b", 2.0)]
    ((_, told, reason),) = beside.refused
    assert told == code
    assert reason.startswith("line 3: ")
    assert why in reason


def test_where_signs_are_no_changes_a_gauge_below_zero_is_a_gauge() -> None:
    found = decoded(StatsdDecoder(changes=False), b"temperature:-3.5|g|#host:a")
    assert (found.refused, [row["value"] for row in rows(found)]) == ([], [-3.5])


def test_a_part_of_a_message_is_the_line_of_its_record() -> None:
    given = b"a:1:2|c|@0.5|#host:a|T1656581400\nu:1|s|#host:a\nb:3|ms|#host:a\nc:1|c"
    assert decoder("statsd").only(given, [1, 2]) == b"a:2|c|@0.5|#host:a|T1656581400\nb:3|ms|#host:a"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (b"a.b:1|c", "statsd"),
        (b"a.b:1|c|#url:x=1 y=2", "statsd"),
        (b"a.b:x y|s\nc:1|g", "statsd"),
        (b"_e{1,1}:a|b\na:1|c", "statsd"),
        (b"_e{1,1}:a|b", "statsd-events"),
        (b"m,host=a v=1,t=\"x:1|c\"", "influx"),
        (b'up{instance="a:1|c"} 1', "prometheus"),
        (b"time:x|c|d\n1795220820|1|2", "csv"),
        (b"a.b:1|kv", None),
    ],
)  # fmt: skip
def test_statsd_is_told_by_its_first_line(value: bytes, name: str | None) -> None:
    form = guess(value)
    assert (form.name if form else None) == name


def test_events_and_service_checks_are_log_lines() -> None:
    given = (
        b"_e{21,36}:An exception occurred|Cannot parse CSV file from 10.0.0.17|t:warning|#err_type:bad_file,host:a\n"
        b"_e{6,5}:caf\xc3\xa9 |a\\n|b|d:1656581400|h:b|s:chef\n"
        b"_sc|Redis connection|2|d:1656581400|h:c|#env:dev|m:Redis connection timed out after 10s|11s\n"
        b"_sc|up|0|#host:d"
    )
    assert log_lines("statsd-events", given) == [
        (ARRIVED, "a", "-", 4, "An exception occurred: Cannot parse CSV file from 10.0.0.17"),
        (AT, "b", "chef", 6, "café : a\n|b"),
        (AT, "c", "Redis connection", 2, "Redis connection is CRITICAL: Redis connection timed out after 10s|11s"),
        (ARRIVED, "d", "up", 6, "up is OK"),
    ]


@pytest.mark.parametrize(
    ("value", "code"),
    [(b"_e{9,4}:title|text|h:a", "LINE_INVALID"), (b"_sc|x|4|h:a", "LINE_INVALID"), (b"_sc|x|1", "MACHINE_UNKNOWN")],
)
def test_an_event_whose_lengths_are_wrong_or_without_a_machine_is_refused(value: bytes, code: str) -> None:
    assert [each[1] for each in decoded(decoder("statsd-events"), value).refused] == [code]


def test_events_in_a_topic_of_metrics_are_told_where_they_belong() -> None:
    ((_, code, why),) = decoded(AnyFormatDecoder(Telemetry), b"_sc|x|1|h:a").refused
    assert (code, "logs.agents" in why) == ("FORMAT_UNKNOWN", True)
    assert decoded(AnyFormatDecoder(Log), b"_sc|x|1|h:a").refused == []


def test_a_line_longer_than_a_datagram_is_left_out_with_its_reason_and_its_neighbours_are_used() -> None:
    tags = b"a:1|c|#host:b,c:d\n"
    values = b"a" + b":1" * 30_000 + b"|c|#host:b\n"  # 60,012 bytes
    alone = decoded(StatsdDecoder(), tags + values)
    found = decoded(StatsdDecoder(), tags + b"a:1|c|#host:b" + b",c:d" * 16_400 + b"\n" + values)
    assert found.records.num_rows == alone.records.num_rows == 30_001
    assert [(code, why.split(",")[0]) for _, code, why in found.refused] == [
        ("LINE_INVALID", "line 2: it has more than 65507 bytes")
    ]
