"""Log lines of agents, against expectations worked out by hand."""

from __future__ import annotations

import json

from tests.pipelines.normalize.examples_times import T0
from tests.pipelines.normalize.formats import ARRIVED, log_lines, refusals


def test_the_text_of_telegrafs_log_inputs_is_a_log_line_with_its_program_and_severity() -> None:
    syslog = {"name": "syslog", "tags": {"host": "a", "appname": "sshd", "severity": "err", "facility": "auth"}}
    syslog |= {"fields": {"message": " no entry ", "severity_code": 3, "procid": "7"}, "timestamp": T0}
    docker = {"name": "docker_log", "tags": {"host": "b", "container_name": "web"}, "fields": {"message": "up"}}
    found = log_lines("telegraf-logs", json.dumps(syslog).encode(), json.dumps(docker | {"timestamp": T0}).encode())
    assert found == [(T0, "a", "sshd", 3, "no entry"), (T0, "b", "web", 6, "up")]


def test_both_of_telegrafs_formats_give_the_same_lines() -> None:
    as_json = {
        "name": "tail",
        "tags": {"host": "a", "path": "/x"},
        "fields": {"value": 'say "no", a=b', "level": "warn"},
    }
    as_line = rb'tail,host=a,path=/x value="say \"no\", a=b",level="warn" 1795220820013000000'
    lines = [(T0, "a", "/x", 4, 'say "no", a=b')]
    assert log_lines("telegraf-logs", json.dumps(as_json | {"timestamp": T0}).encode()) == lines
    assert log_lines("influx-logs", as_line) == lines


def test_text_without_a_message_is_a_line_of_its_fields_so_that_a_change_of_it_is_seen() -> None:
    found = log_lines("influx-logs", b'mysql,host=a state="up",role="db",n=3i\nmysql,host=a state="down" 1795220820')
    assert found == [(ARRIVED, "a", "mysql", 6, "role=db state=up"), (1_795_220_820_000, "a", "mysql", 6, "state=down")]


def test_a_message_without_text_or_without_a_machine_is_a_dead_letter() -> None:
    values = (b"m,host=a x=1", b'm,dc=x log="y"', b'm,host=a log="y', b"m")
    codes = ["MESSAGE_EMPTY", "MACHINE_UNKNOWN", "LINE_INVALID", "LINE_INVALID"]
    assert refusals("influx-logs", *values) == list(enumerate(codes))
