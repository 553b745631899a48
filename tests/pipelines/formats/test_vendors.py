"""Log lines and samples as the documentation of their vendors shows them: machine, program, time, severity, text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.contracts.settings.input import InputSettings
from pipelines.formats.catalogue import BY_NAME, guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import decoded, rows

NOON = 1795860900000
"""2026-11-28T10:15:00Z, some hours before the messages arrive."""
ARRIVED = NOON + 3_600_000


def read(value: bytes, **settings: str) -> list[dict[str, Any]]:
    """The records of a message of a format that is recognised; nothing of it may be refused."""
    rules = Rules.of(InputSettings.model_validate(settings), "logs.agents")
    form = guess(value, rules=rules)
    assert form is not None
    found = decoded(form.build(rules), value, arrived=ARRIVED)
    assert found.refused == []
    return rows(found)


LINES: dict[str, tuple[dict[str, Any], tuple[int, str, str, int, str]]] = {
    "rsyslog, template for Logstash": (
        {
            **{"@timestamp": "2026-11-28T10:15:00+00:00", "@version": "1", "message": " opened", "sysloghost": "web-1"},
            **{"severity": "info", "facility": "authpriv", "programname": "sudo", "procid": "-"},
        },
        (NOON, "web-1", "sudo", 6, "opened"),
    ),
    "syslog-ng, format-json of the usual names": (
        {
            **{"PRIORITY": "crit", "PROGRAM": "kernel", "MESSAGE": "no", "HOST": "web-1", "FACILITY": "kern"},
            "DATE": "Nov 28 10:15:00",
        },
        (NOON, "web-1", "kernel", 2, "no"),
    ),
    "Winlogbeat": (
        {
            **{"@timestamp": "2026-11-28T10:15:00Z", "host": {"name": "w"}, "log": {"level": "information"}},
            **{"winlog": {"channel": "System", "provider_name": "Service Control Manager"}, "message": "runs"},
        },
        (NOON, "w", "Service Control Manager", 6, "runs"),
    ),
    "journald, a service's standard output": (
        {
            **{"__REALTIME_TIMESTAMP": f"{NOON}000", "PRIORITY": "6", "_COMM": "bash", "_TRANSPORT": "stdout"},
            **{"_HOSTNAME": "web-1", "MESSAGE": "hello"},
        },
        (NOON, "web-1", "bash", 6, "hello"),
    ),
    "JBoss, Quarkus": (
        {
            **{"timestamp": "2026-11-28T10:15:00Z", "loggerName": "org.acme.Shop", "level": "SEVERE"},
            **{"message": "no", "hostName": "web-1", "processName": "quarkus-run.jar", "processId": 7},
        },
        (NOON, "web-1", "quarkus-run.jar", 3, "no"),
    ),
    "Logback's encoder for Logstash": (
        {
            **{"@timestamp": "2026-11-28T11:15:00+01:00", "@version": "1", "message": "no", "level": "ERROR"},
            **{"logger_name": "org.acme.Shop", "level_value": 40000, "HOSTNAME": "web-1", "app": "shop"},
        },
        (NOON, "web-1", "shop", 3, "no"),
    ),
    "Google Cloud, fields": (
        {
            **{"insertId": "a", "jsonPayload": {"message": "no"}, "timestamp": "2026-11-28T10:15:00Z"},
            **{"severity": "ERROR", "logName": "projects/p/logs/shop", "resource": {"type": "gce_instance"}},
            "labels": {"compute.googleapis.com/resource_name": "vm-7"},
        },
        (NOON, "vm-7", "projects/p/logs/shop", 3, "no"),
    ),
    "Google Cloud, text of a container": (
        {
            **{"textPayload": "no", "timestamp": "2026-11-28T10:15:00Z", "severity": "WARNING"},
            "resource": {"type": "k8s_container", "labels": {"container_name": "cart", "instance_id": "17"}},
        },
        (NOON, "17", "cart", 4, "no"),
    ),
    "Go, slog, between two levels": (
        {"time": "2026-11-28T10:15:00.000123Z", "level": "ERROR+2", "msg": "no", "host": "a"},
        (NOON, "a", "-", 3, "no"),
    ),
    "Python": (
        {"asctime": "2026-11-28 10:15:00,000", "levelname": "CRITICAL", "name": "x", "message": "no", "hostname": "a"},
        (NOON, "a", "x", 2, "no"),
    ),
    "Serilog, compact": (
        {"@t": "2026-11-28T10:15:00.0000000Z", "@mt": "Hello, {User}", "@l": "Warning", "MachineName": "a"},
        (NOON, "a", "-", 4, "Hello, {User}"),
    ),
    "Serilog": (
        {
            **{"Timestamp": "2026-11-28T10:15:00.0000000+00:00", "Level": "Error", "MessageTemplate": "Hello {User}"},
            **{"RenderedMessage": "Hello alice", "Properties": {"User": "alice", "MachineName": "a"}},
        },
        (NOON, "a", "-", 3, "Hello alice"),
    ),
    "Monolog": (
        {
            **{"message": "no", "context": {}, "level": 400, "level_name": "ERROR", "channel": "shop"},
            **{"datetime": "2026-11-28T10:15:00.000000+00:00", "extra": {"hostname": "a"}},
        },
        (NOON, "a", "-", 3, "no"),
    ),
    "Docker's driver for Splunk": (
        {
            **{"event": {"line": "no", "source": "stderr", "tag": "cart/1"}, "time": "1795860900.000000"},
            "host": "dock-1",
        },
        (NOON, "dock-1", "cart/1", 6, "no"),
    ),
    "Log4j's JsonLayout": (
        {
            **{"instant": {"epochSecond": NOON // 1000, "nanoOfSecond": 7}, "level": "ERROR", "loggerName": "org.acme"},
            **{"message": "no", "host": "a"},
        },
        (NOON, "a", "-", 3, "no"),
    ),
    "ECS of Java's loggers": (
        {
            **{"@timestamp": "2026-11-28T10:15:00Z", "log.level": "WARN", "message": "no", "ecs.version": "1.2.0"},
            **{"service.name": "shop", "host.hostname": "web-1"},
        },
        (NOON, "web-1", "shop", 4, "no"),
    ),
    "structlog": (
        {"event": "failed", "level": "error", "timestamp": "2026-11-28T10:15:00.000000Z", "host": "a"},
        (NOON, "a", "-", 3, "failed"),
    ),
    "Rust, tracing": (
        {"timestamp": "2026-11-28T10:15:00Z", "level": "ERROR", "fields": {"message": "no"}, "host": "a"},
        (NOON, "a", "-", 3, "no"),
    ),
    "PostgreSQL": (
        {
            **{"timestamp": "2026-11-28 10:15:00.000 UTC", "dbname": "shop", "pid": 7, "error_severity": "ERROR"},
            **{"message": "no", "backend_type": "client backend", "host": "db-1"},
        },
        (NOON, "db-1", "-", 3, "no"),
    ),
}


@pytest.mark.parametrize("vendor", LINES)
def test_lines_of_a_vendor_have_their_machine_program_time_and_severity(vendor: str) -> None:
    given, expected = LINES[vendor]
    (row,) = read(json.dumps(given).encode())
    assert (row["time"], row["entity"], row["program"], row["severity"], row["message"]) == expected


def test_times_of_shipped_lines_that_name_no_zone_are_in_that_of_the_setting() -> None:
    nxlog = {"EventTime": "2026-11-28 11:15:00", "Hostname": "win-1", "Message": "no", "Severity": "ERROR"}
    (row,) = read(json.dumps(nxlog).encode(), timezone="win-*=Europe/Berlin,UTC")
    assert row["time"] == NOON
    zoned = {"EventTime": "2026-11-28T11:15:00+01:00", "Hostname": "win-1", "Message": "no"}
    (row,) = read(json.dumps(zoned).encode(), timezone="America/New_York")
    assert row["time"] == NOON


def test_lines_that_telegraf_collects_from_others_are_of_the_machine_that_wrote_them() -> None:
    rules = Rules()
    syslog = b'syslog,appname=sshd,host=relay-1,hostname=web-1,severity=err message="no",severity_code=3i 1795860900'
    windows = {"host": "relay-1", "Computer": "win-1", "Source": "Service Control Manager", "Level": "2"}
    event = {"name": "win_eventlog", "tags": windows, "fields": {"Message": "no"}, "timestamp": NOON // 1000}
    expected = {"influx-logs": ("web-1", "sshd", 3), "telegraf-logs": ("win-1", "Service Control Manager", 3)}
    for form, value in (("influx-logs", syslog), ("telegraf-logs", json.dumps(event).encode())):
        (row,) = rows(decoded(BY_NAME[form].build(rules), value, arrived=ARRIVED))
        assert (row["entity"], row["program"], row["severity"]) == expected[form]
    chosen = Rules.of(InputSettings(machine="host"))
    (row,) = rows(decoded(BY_NAME["influx-logs"].build(chosen), syslog, arrived=ARRIVED))
    assert row["entity"] == "relay-1", "a setting holds"


def test_the_machine_stands_behind_the_prefixes_of_icinga_and_netdata() -> None:
    icinga = b"icinga2.web-1.services.disk.disk.perfdata.used.value 2643 1795860900"
    (row,) = read(icinga)
    assert (row["entity"], row["metric"]) == ("web-1", "services.disk.disk.perfdata.used.value")


def test_performance_counters_of_windows_are_read_without_a_zone_in_their_header_too() -> None:
    text = b'"(PDH-CSV 4.0)","\\\\w\\Processor(_Total)\\% Processor Time"\n"11/28/2026 10:15:00.000","3.5"\n'
    (row,) = read(text)
    assert (row["time"], row["entity"], row["metric"], row["value"]) == (
        *(NOON, "w", "Processor.% Processor Time{instance=_Total}"), 3.5,
    )  # fmt: skip


@pytest.mark.parametrize("header", ['"(PDH-CSV 4.0)","x"', '"(PDH-CSV 4.0) (UTC)(0)","x"', '"(PDH-CSV 4.0)"'])
def test_a_header_of_performance_counters_without_a_counter_refuses_its_message_alone(header: str) -> None:
    value = f'{header}\n"11/28/2026 10:15:00.000"{",2" * header.count(",")}\n'.encode()
    ((row, code, why),) = decoded(BY_NAME["csv"].build(Rules()), value, b"time,host,v\n1795860900,a,5\n").refused
    assert (row, code) == (0, "LINE_INVALID")
    assert "no column holds the time" in why


def test_a_message_of_nx_os_has_no_sequence_number() -> None:
    nx = b"<189>: 2026 Nov 28 10:15:00.123 UTC: %ETHPORT-5-IF_UP: Interface Ethernet1/1 is up"
    (row,) = read(nx, default_machine="sw-1")
    assert (row["time"], row["entity"], row["program"], row["severity"]) == (NOON + 123, "sw-1", "ETHPORT", 5)
    (row,) = read(b"<189>2026 Nov 28 10:15:00 sw-2 %ETHPORT-5-IF_UP: Interface Ethernet1/1 is up")
    assert (row["time"], row["entity"]) == (NOON, "sw-2"), "the year is no machine"


def test_an_order_of_fields_that_the_user_says_names_the_machine_of_shipped_lines() -> None:
    line = json.dumps({"message": "no", "host": "web-1", "HOSTNAME": "pod-1", "service": {"name": "shop"}}).encode()
    assert [row["entity"] for row in read(line)] == ["web-1"]
    assert [row["entity"] for row in read(line, machine="service.name,host")] == ["shop"]
    assert [row["entity"] for row in read(line, machine="service.name")] == ["shop"]


def test_csv_of_kibanas_tables_and_for_excel_is_read() -> None:
    kibana = b'"@timestamp per 5 minutes","host.name","Average system.cpu.total.pct"\n"2026-11-28 10:15",a,"12.5%"\n'
    (row,) = read(kibana)
    assert (row["time"], row["entity"], row["metric"], row["value"]) == (
        NOON,
        "a",
        "Average system.cpu.total.pct",
        12.5,
    )
    for mark in (b",", b";"):
        lines = b'sep=%s\n"Time"%s"host"%s"cpu"\n2026-11-28 10:15:00%sa%s5.5\n' % ((mark,) * 5)
        (row,) = read(lines)
        assert (row["time"], row["entity"], row["metric"], row["value"]) == (NOON, "a", "cpu", 5.5)


def test_a_column_of_how_long_something_takes_is_no_time_beside_one() -> None:
    for name in ("Time per request", "time per second", "Time per 5 minutes"):
        (row,) = read(f"timestamp,host,{name}\n2026-11-28 10:15:00,a,12.5\n".encode())
        assert (row["time"], row["metric"], row["value"]) == (NOON, name, 12.5)


@pytest.mark.parametrize("form", ['{{"message":"no","host":"a","timestamp":"{}"}}', "<34>1 {} a su - - - no"])
def test_a_time_of_very_many_digits_is_refused_in_our_own_words(form: str) -> None:
    value = form.format("9" * 5_000).encode()
    known = guess(value)
    assert known is not None
    ((_, code, why),) = decoded(known.build(Rules()), value).refused
    assert code == "FIELD_INVALID"
    assert "is no time; accepted: ISO 8601" in why
