"""What the lines of an interval become, against expectations worked out by hand from the specification of StatsD."""

from __future__ import annotations

import pytest

from pipelines.contracts.records import Log, Telemetry
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.rules import Rules
from pipelines.gateway import statsd
from pipelines.gateway.statsd import Aggregator
from tests.pipelines.formats.decoding import decoded, rows

END = 1_795_220_820_000


def flushed(aggregator: Aggregator, now: int = END) -> list[tuple[str, str, float, str]]:
    """(machine, metric, value, kind) of an interval, as the pipeline reads them; all have the time of its end."""
    found = decoded(AnyFormatDecoder(Telemetry), *aggregator.flush(now)[0])
    assert found.refused == []
    assert {row["time"] for row in rows(found)} <= {now}
    return sorted((row["entity"], row["metric"], row["value"], row["kind"]) for row in rows(found))


def taken(*texts: str, now: int = END, **given: int) -> Aggregator:
    aggregator = Aggregator(Rules(), **given)
    aggregator.add([("192.0.2.7", text.encode()) for text in texts], now)
    return aggregator


def test_counters_are_added_up_with_their_sample_rates_for_each_machine() -> None:
    found = taken("n:1|c|#host:a\nn:3|c|@0.5|#host:a\nn:4|c|#host:b", "n:5|c|#host:a\nn:7|c")
    assert flushed(found) == [("192.0.2.7", "n", 7.0, "count"), ("a", "n", 12.0, "count"), ("b", "n", 4.0, "count")]


def test_changes_of_a_gauge_are_added_and_its_value_is_kept() -> None:
    found = taken("g:10|g|#host:a\ng:-3|g|#host:a\ng:+1|g|#host:a")
    assert flushed(found) == [("a", "g", 8.0, "gauge")]
    assert flushed(found, END + 10_000) == [("a", "g", 8.0, "gauge")]
    found.add([("x", b"g:-20|g|#host:a")], END + statsd.QUIET_MS * 3)
    assert flushed(found, END + statsd.QUIET_MS * 3) == [("a", "g", -12.0, "gauge")]


def test_timers_become_count_mean_maximum_and_quantiles_each_value_as_often_as_its_rate_says() -> None:
    found = taken("t:" + ":".join(map(str, range(1, 100))) + "|ms|#host:a\nt:500|ms|@0.5|#host:a\nt:7|h|#host:b")
    total = sum(range(1, 100)) + 1000
    assert flushed(found)[:5] == [
        ("a", "t.count", 101.0, "count"),
        ("a", "t.max", 500.0, "latency"),
        ("a", "t.mean", total / 101, "latency"),
        ("a", "t.p50", 51.0, "latency"),
        ("a", "t.p95", 96.0, "latency"),
    ]
    assert flushed(found, END + 10_000) == [("a", "t.count", 0.0, "count"), ("b", "t.count", 0.0, "count")]


def test_the_size_of_a_set_is_the_number_of_its_members_in_the_interval() -> None:
    found = taken("u:x|s|#host:a\nu:y:z|s|#host:a\nu:x|s|#host:a")
    assert flushed(found) == [("a", "u", 2.0, "gauge")]
    assert flushed(found, END + 10_000) == [("a", "u", 0.0, "gauge")]


def test_tags_behind_the_name_stay_tags() -> None:
    found = flushed(taken("t,region=eu,path=/x:5|ms"))
    assert ("192.0.2.7", "t.p95{path=/x}", 5.0, "latency") in found


def test_a_series_of_which_nothing_comes_is_reported_for_five_minutes_and_then_forgotten() -> None:
    found = taken("n:1|c|#host:a")
    assert flushed(found) == [("a", "n", 1.0, "count")]
    assert flushed(found, END + statsd.QUIET_MS) == [("a", "n", 0.0, "count")]
    assert flushed(found, END + statsd.QUIET_MS + 1) == []


def test_a_line_with_a_timestamp_is_passed_on_with_its_time_and_machine() -> None:
    found = taken("n:5|c|T1795220000\nn:-6|g|#env:x|T1795220001\nn:7|g|#host:a,env:x|c:1|T1795220002")
    samples = rows(decoded(AnyFormatDecoder(Telemetry), *found.flush(END)[0]))
    assert [(row["time"], row["entity"], row["metric"], row["value"]) for row in samples] == [
        (1_795_220_000_000, "192.0.2.7", "n", 5.0),
        (1_795_220_001_000, "192.0.2.7", "n{env=x}", -6.0),
        (1_795_220_002_000, "a", "n{env=x}", 7.0),
    ]


def test_events_and_checks_become_log_lines_of_their_machine() -> None:
    found = taken("_e{1,1}:a|b|t:error\n_sc|up|1|m:no|h:x\n_sc|up|0|h:c", "_e{1,1}:c|d|#host:a")
    lines = rows(decoded(AnyFormatDecoder(Log), *found.flush(END)[1]))
    told = [(row["entity"], row["severity"], row["message"]) for row in lines]
    assert told == [
        ("192.0.2.7", 3, "a: b"), ("192.0.2.7", 4, "up is WARNING: no|h:x"), ("c", 6, "up is OK"), ("a", 6, "c: d"),
    ]  # fmt: skip


def test_what_cannot_be_used_is_counted_and_costs_no_other_line() -> None:
    found = taken("n:x|c\nn:1|c|#host:a", "\xff", f"{'y' * 510}:1|c\nz")
    assert flushed(found) == [("a", "n", 1.0, "count")]
    assert found.left_out == {"LINE_INVALID": 3, "FIELD_INVALID": 1}


def test_the_number_of_series_is_bounded_and_those_that_are_held_go_on() -> None:
    found = taken("a:1|c|#host:a\nb:1|c|#host:a\nc:1|c|#host:a\na:2|c|#host:a", most=2)
    assert [each[1:3] for each in flushed(found)] == [("a", 3.0), ("b", 1.0)]
    assert found.left_out == {"STATSD_SERIES": 1}


def test_the_values_of_an_interval_are_bounded_and_count_and_maximum_still_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statsd, "_MOST_VALUES", 3)
    told = {metric: value for _, metric, value, _ in flushed(taken("t:1:2:3:4:5|ms|#host:a\nu:x|s|#host:a"))}
    assert told == {"t.count": 5.0, "t.max": 5.0, "t.mean": 3.0, "t.p50": 2.0, "t.p95": 3.0, "u": 0.0}


def test_an_interval_of_many_series_is_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statsd, "_MESSAGE", 100)
    found = taken("\n".join(f"n{at}:1|c|#host:a" for at in range(20)))
    messages, _ = found.flush(END)
    assert len(messages) > 3
    assert len(rows(decoded(AnyFormatDecoder(Telemetry), *messages))) == 20
