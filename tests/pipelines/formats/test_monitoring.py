"""Zabbix' export, Nagios' performance data and Prometheus' HTTP API, against expectations from their documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.formats.catalogue import guess
from tests.pipelines.formats.decoding import refusals, samples
from tests.pipelines.formats.examples_times import T0

SECONDS = T0 // 1000
ITEM = {
    "host": {"host": "a", "name": "A"},
    "itemid": 4,
    "name": "CPU load",
    "clock": SECONDS,
    "ns": 13_999_999,
    "type": 0,
}


def told(message: Any) -> bytes:
    return json.dumps(message).encode()


def perfdata(text: str, **given: str) -> bytes:
    fields = {"DATATYPE": "SERVICEPERFDATA", "TIMET": str(SECONDS), "HOSTNAME": "a", "SERVICEDESC": "PING"}
    fields |= {"SERVICEPERFDATA": text, "SERVICESTATE": "OK"} | given
    return "\t".join(f"{name}::{value}" for name, value in fields.items()).encode()


def result(kind: str, *series: dict[str, Any]) -> bytes:
    return told({"status": "success", "data": {"resultType": kind, "result": list(series)}})


def test_items_of_zabbix_are_samples_with_their_tags_and_trends_three_of_them() -> None:
    tags = [{"tag": "cpu", "value": "all"}, {"tag": "new", "value": ""}]
    trend = {"clock": SECONDS, "min": 1, "avg": 2.5, "max": 5, "count": 60, "type": 3}
    given = (ITEM | {"value": 0.5, "item_tags": tags}, {key: ITEM[key] for key in ("host", "itemid", "name")} | trend)
    assert samples("zabbix", *map(told, given)) == [
        (T0, "a", "CPU load{cpu=all,new=true}", 0.5, "gauge"),
        (SECONDS * 1000, "a", "CPU load.min", 1.0, "gauge"),
        (SECONDS * 1000, "a", "CPU load.avg", 2.5, "gauge"),
        (SECONDS * 1000, "a", "CPU load.max", 5.0, "gauge"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rta=0.5ms;100.0;500.0;0 pl=0%;20;60;0", [("PING.rta", 0.5), ("PING.pl", 0.0)]),
        ("'a b'=1;;;; 'it''s'=2c", [("PING.a b", 1.0), ("PING.it's", 2.0)]),
        ("/=2643MB;5948;5958;0;5968 /boot=68MB;88", [("PING./", 2643.0), ("PING./boot", 68.0)]),
        ("x=U y=-1.5e2 z=@10 ", None),
        ("time=0,25s;1:;~:5", [("PING.time", 0.25)]),
    ],
)
def test_performance_data_are_gauges_of_their_service(text: str, expected: list[tuple[str, float]] | None) -> None:
    if expected is None:
        assert refusals("nagios", perfdata(text)) == [(0, "LINE_INVALID")]
    else:
        assert samples("nagios", perfdata(text)) == [
            (SECONDS * 1000, "a", metric, value, "gauge") for metric, value in expected
        ]


def test_a_value_that_is_unknown_is_left_out() -> None:
    assert [each[2:4] for each in samples("nagios", perfdata("x=U;1;2 y=3"))] == [("PING.y", 3.0)]


def test_answers_of_prometheus_are_samples_and_the_name_tells_what_counts() -> None:
    up = {"__name__": "up", "instance": "a:9090", "job": "x"}
    vector = result("vector", {"metric": up, "value": [T0 / 1000, "1"]})
    values = [[T0 / 1000, "1"], [T0 / 1000 + 15, "NaN"], [T0 / 1000 + 30, "2.5"]]
    named = {"metric": {"__name__": "n_total", "instance": "b"}, "values": values}
    matrix = result("matrix", named, {"metric": {"instance": "c"}, "values": values[:1]})
    assert samples("prometheus-api", vector, matrix) == [
        (T0, "a", "up{job=x,port=9090}", 1.0, "gauge"),
        (T0, "b", "n_total", 1.0, "counter"),
        (T0 + 30_000, "b", "n_total", 2.5, "counter"),
        (T0, "c", "value", 1.0, "gauge"),
    ]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("zabbix", told(ITEM | {"value": "up", "type": 4}), "TEXT_FIELD"),
        ("zabbix", told(ITEM | {"value": "up"}), "FIELD_INVALID"),
        ("zabbix", told(ITEM | {"value": 1, "host": {}}), "MACHINE_UNKNOWN"),
        ("nagios", perfdata("x=1", HOSTNAME=""), "LINE_INVALID"),
        ("nagios", perfdata("x"), "LINE_INVALID"),
        ("nagios", perfdata("x=1e999"), "LINE_INVALID"),
        ("nagios", perfdata("x=1", TIMET="now"), "LINE_INVALID"),
        ("prometheus-api", result("scalar", {"metric": {}}), "FIELD_INVALID"),
        ("prometheus-api", result("vector", {"metric": {"job": "x"}, "value": [1, "1"]}), "MACHINE_UNKNOWN"),
        ("prometheus-api", result("vector", {"metric": {"host": "x"}, "value": [1, "NaN"]}), "MESSAGE_EMPTY"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_code(name: str, value: bytes, code: str) -> None:
    form = guess(value)
    assert form is not None
    assert form.name == name
    assert refusals(name, value) == [(0, code)]
