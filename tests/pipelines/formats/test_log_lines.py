"""Log lines of agents, against expectations worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.contracts.records import Log
from pipelines.formats.any_format import AnyFormatDecoder
from tests.pipelines.formats.decoding import ARRIVED, decoded, decoder, log_lines, refusals, rows
from tests.pipelines.formats.examples_times import T0


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


texts = st.text('ab ,=#\n"\\', max_size=8)


@settings(deadline=None, max_examples=200)
@given(messages=st.lists(st.lists(st.tuples(texts, texts), min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_text_in_quotes_may_hold_whatever_divides_lines_elsewhere(messages: list[list[tuple[str, str]]]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    values = [
        "\n".join(f"tail,host=a n=1i,note={quoted(note)},log={quoted(log)} 1795220820" for note, log in lines)
        for lines in messages
    ]
    found = decoded(decoder("influx-logs"), *(value.encode() for value in values))
    expected = [
        (row, log.strip() or f"note={note}".strip())
        for row, lines in enumerate(messages)
        for note, log in lines
        if log.strip() or note.strip()
    ]
    assert [(line["__row"], line["message"]) for line in rows(found)] == expected
    assert {row for row, *_ in found.refused} == set(range(len(messages))) - {row for row, _ in expected}


def test_syslog_of_rfc_5424_is_read_as_the_rfc_shows_it() -> None:
    examples = [
        b"<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \xef\xbb\xbf'su root' failed for lonvick",
        b"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.",
        b'<165>1 2003-10-11T22:14:15.003Z m evntslog - ID47 [a@1 iut="3" s="x\\]\\"y"][b@1 c="d"] An application event',
        b"<14>1 - m - - - - without a time",
    ]
    assert log_lines("syslog", *examples) == [
        (1_065_910_455_003, "mymachine.example.com", "su", 2, "'su root' failed for lonvick"),
        (1_061_727_255_000, "192.0.2.1", "myproc", 5, "%% It's time to make the do-nuts."),
        (1_065_910_455_003, "m", "evntslog", 5, "An application event"),
        (ARRIVED, "m", "-", 6, "without a time"),
    ]


def test_syslog_of_rfc_3164_lies_in_the_year_next_to_its_arrival() -> None:
    new_year = 1_798_761_600_000  # 2027-01-01T00:00:00Z
    found = rows(decoded(decoder("syslog"), b"<34>Dec 31 23:59:59 a su: no", arrived=new_year + 1_000))
    assert (found[0]["time"], found[0]["severity"]) == (new_year - 1_000, 2)
    found = rows(decoded(decoder("syslog"), b"<13>Jan  1 00:00:01 a cron[7]: (root) CMD", arrived=new_year - 1_000))
    assert (found[0]["time"], found[0]["program"], found[0]["message"]) == (new_year + 1_000, "cron", "(root) CMD")


def test_what_is_no_syslog_is_a_dead_letter() -> None:
    values = (
        b"<999>1 - m - - - - x",
        b"<13>hello",
        b"<13>1 2026-13-01T00:00:00Z m p - - - x",
        b"<13>Feb 30 00:00:00 a b: c",
    )
    codes = ["LINE_INVALID", "LINE_INVALID", "FIELD_INVALID", "FIELD_INVALID"]
    assert refusals("syslog", *values) == list(enumerate(codes))
    assert refusals("syslog", b"<13>1 - - p - - - x", b"<13>1 - m p - - -") == [
        (0, "MACHINE_UNKNOWN"),
        (1, "MESSAGE_EMPTY"),
    ]


def test_filebeat_fluent_bit_and_vector_are_log_lines() -> None:
    filebeat = {
        "@timestamp": "2026-11-21T00:27:00.013Z", "@metadata": {"beat": "filebeat"}, "ecs": {"version": "8.0.0"},
        "host": {"name": "a", "ip": ["::1"]}, "agent": {"name": "b", "type": "filebeat"},
        "log": {"level": "warn", "file": {"path": "/var/log/x"}}, "process": {"name": "sshd", "pid": 7},
        "message": "no\n",
    }  # fmt: skip
    elastic_agent = {
        "@timestamp": "2026-11-21T00:27:00.013Z",
        "host.name": "a",
        "log.syslog.severity.code": 2,
        "message": "x",
    }
    fluent = {
        "@timestamp": 1795220820.013,
        "log": "no",
        "stream": "stderr",
        "kubernetes": {"host": "n1", "container_name": "web"},
    }
    journald = {"date": 1795220820.013, "MESSAGE": "no", "PRIORITY": "3", "hostname": "a", "SYSLOG_IDENTIFIER": "su"}
    exported = {  # by `journalctl -o json`
        "__REALTIME_TIMESTAMP": "1795220820013000", "MESSAGE": "no", "_HOSTNAME": "a", "SYSLOG_IDENTIFIER": "su",
        "PRIORITY": "3",
    }  # fmt: skip
    vector = {"appname": "su", "host": "a", "message": "no", "severity": "err", "timestamp": "2026-11-21T00:27:00.013Z"}
    shippers = (filebeat, elastic_agent, fluent, journald, exported, vector)
    found = log_lines("shipped-logs", *(json.dumps(each).encode() for each in shippers))
    assert found == [
        (T0, "a", "sshd", 4, "no"),
        (T0, "a", "-", 2, "x"),
        (T0, "n1", "web", 6, "no"),
        *[(T0, "a", "su", 3, "no")] * 3,
    ]
    assert refusals("shipped-logs", b'{"message":"no"}', b'{"host":"a","message":" "}', b"{") == [
        *((0, "MACHINE_UNKNOWN"), (1, "MESSAGE_EMPTY"), (2, "JSON_MALFORMED")),
    ]


@pytest.mark.parametrize(
    "severity",
    [
        {"log": {"syslog": {"severity": {"code": 2}}}},
        {"log.syslog": {"severity.code": 2}, "log": {"level": "debug"}},
        {"log": {"syslog.severity": {"code": "2"}, "file": {"path": "/x"}}},
        {"log.syslog.severity.code": 2},
        {"log": {"syslog": {"severity": {"code": None}}, "level": "CRIT"}},
        {"log.syslog.severity.code": 7, "log": {"syslog": {"severity": {"code": 2}}}},
    ],
)
def test_a_field_of_a_shipped_line_may_be_nested_or_have_dots_and_the_last_one_counts(severity: dict[str, Any]) -> None:
    value = json.dumps({"host": {"name": "a"}, "message": "no", "program": "su"} | severity).encode()
    assert [line[2:] for line in log_lines("shipped-logs", value)] == [("su", 2, "no")]


@pytest.mark.parametrize("value", [b'[{"message":"no","host":"a"},"lost"]', b'["lost"]', b'"lost"', b"7"])
def test_what_is_no_object_is_refused_with_its_neighbours_and_never_lost(value: bytes) -> None:
    assert refusals("shipped-logs", value) == [(0, "FIELD_INVALID")]
    assert decoded(decoder("shipped-logs"), value).records.num_rows == 0


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        *(({"level": level}, severity) for level, severity in ((10, 7), (20, 7), (30, 6), (40, 4), (50, 3), (60, 2))),
        *(({"level": level}, s) for level, s in (("SEVERE", 3), ("WARNING", 4), ("CONFIG", 6), ("FINE", 7))),
        *(({"level": level}, s) for level, s in (("WRN", 4), ("ERR", 3), ("INF", 6), ("DBG", 7), ("FTL", 2))),
        *(({"levelname": level}, s) for level, s in (("CRITICAL", 2), ("ERROR", 3), ("WARNING", 4), ("DEBUG", 7))),
        *(({"levelno": level}, s) for level, s in ((50, 2), (40, 3), (30, 4), (20, 6), (10, 7))),
        *(({"severity": level}, s) for level, s in (("DEFAULT", 6), ("NOTICE", 5), ("ALERT", 1), ("EMERGENCY", 0))),
        *(({"severity": level}, s) for level, s in ((100, 7), (300, 5), (500, 3), (600, 2), (800, 0))),
        *(({"level": n, "level_name": name}, s) for n, name, s in ((250, "NOTICE", 5), (550, "ALERT", 1))),
        *(({"level": n}, s) for n, s in ((250, 5), (300, 4), (400, 3), (500, 2))),
        *(({"syslogseverity": text}, s) for text, s in (("3", 3), ("0", 0))),
        ({"severity": "err"}, 3), ({"log_level": "warn"}, 4), ({"@level": "error"}, 3), ({"lvl": "eror"}, 3), ({}, 6),
    ],
)  # fmt: skip
def test_the_levels_of_the_usual_loggers_are_understood(fields: dict[str, Any], severity: int) -> None:
    value = json.dumps({"host": "a", "message": "no"} | fields).encode()
    assert [line[3:] for line in log_lines("shipped-logs", value)] == [(severity, "no")]


def test_a_level_that_is_not_understood_is_kept_in_the_text() -> None:
    shipped = b'{"host":"a","message":"no","level":"STRANGE"}'
    assert [line[3:] for line in log_lines("shipped-logs", shipped)] == [(8, "level=STRANGE no")]
    assert [line[3:] for line in log_lines("influx-logs", b'm,host=a,level=77 log="no"')] == [(8, "level=77 no")]
    rsyslog = b'{"ts":"2026-11-21T00:28:54Z","host":"a","program":"su","severity":"STRANGE","msg":"no"}'
    assert [line[3:] for line in log_lines("rsyslog", rsyslog)] == [(8, "level=STRANGE no")]
    logfmt = b'level=STRANGE msg="no" host=a\nmsg="yes" host=a'
    assert [line[3:] for line in log_lines("logfmt", logfmt)] == [(8, "level=STRANGE no"), (6, "yes")]


def test_the_numbers_of_windows_events_are_read_by_its_own_scale() -> None:
    event = b'win_eventlog,host=a Message="no",Level=%di'
    assert [line[3] for line in log_lines("influx-logs", *(event % level for level in (1, 2, 3, 4, 5)))] == [
        2,
        3,
        4,
        6,
        7,
    ]


def test_ecs_in_flat_form_keeps_its_level_and_a_line_of_our_own_needs_no_program() -> None:
    flat: dict[str, Any] = {
        "@timestamp": "2026-11-21T00:27:00.013Z",
        "log.level": "ERROR",
        "message": "no",
        "host.name": "a",
    }
    lines = [flat | more | {"ecs.version": "1.2.0"} for more in ({"service.name": "shop"}, {"process.name": "java"})]
    lines += [flat | {"process.name": "java"}]
    own = {"@timestamp": T0, "host.name": "a", "log.syslog.severity.code": 3, "message": "no"}
    lines += [own, own | {"process.name": ""}]
    found = decoded(AnyFormatDecoder(Log), *(json.dumps(each).encode() for each in lines))
    assert found.refused == []
    assert [(row["program"], row["severity"]) for row in rows(found)] == [
        *(("shop", 3), ("java", 3), ("java", 3)),
        *(("-", 3), ("-", 3)),
    ]


def test_the_bytes_of_journald_and_the_nodes_of_kubernetes_are_read() -> None:
    coloured = (
        b'{"__REALTIME_TIMESTAMP":"1795220820013000","MESSAGE":[27,91,51,49,109,110,111,195,182,13],"_HOSTNAME":"a",'
    )
    coloured += b'"SYSLOG_IDENTIFIER":["su","x"],"PRIORITY":"3"}'
    found = decoded(AnyFormatDecoder(Log), coloured)
    assert [(row["entity"], row["program"], row["message"]) for row in rows(found)] == [("a", "su", "\x1b[31mnoö")]
    merged = {"log": "no", "host": "shop.example.com", "kubernetes": {"host": "n1", "container_name": "web"}}
    assert log_lines("shipped-logs", json.dumps(merged).encode())[0][1:3] == ("n1", "web")


def test_a_list_of_which_some_objects_hold_no_line_is_told() -> None:
    value = b'[{"message":"kept","host":"h"},{"nothing":1},{"message":"","host":"h"}]'
    found = decoded(decoder("shipped-logs"), value)
    assert [row["message"] for row in rows(found)] == ["kept"]
    ((_, code, why),) = found.refused
    assert code == "MESSAGE_EMPTY"
    assert "2 of 3" in why


def test_jsonmesg_of_rsyslog_and_format_json_of_syslog_ng_are_read() -> None:
    jsonmesg = {
        "msg": " error: no", "rawmsg": "<11>x", "timereported": "2026-11-21T00:27:00.013+00:00", "hostname": "a",
        "syslogtag": "sshd[7]:", "fromhost": "relay", "pri": "11", "syslogfacility": "1", "syslogseverity": "3",
        "timegenerated": "2026-11-21T00:27:09+00:00", "programname": "sshd", "procid": "7",
    }  # fmt: skip
    syslog_ng = {
        "ISODATE": "2026-11-21T00:27:00.013+00:00", "HOST": "a", "PROGRAM": "sshd", "PRIORITY": "err",
        "MESSAGE": "error: no",
    }  # fmt: skip
    found = log_lines("shipped-logs", *(json.dumps(each).encode() for each in (jsonmesg, syslog_ng)))
    assert found == [(T0, "a", "sshd", 3, "error: no")] * 2


def test_a_line_without_a_machine_is_told_the_labels_at_hand_or_what_to_do_without_any() -> None:
    ((_, code, why),) = decoded(decoder("shipped-logs"), b'{"message":"no","stream":"stderr","pod":"p"}').refused
    assert code == "MACHINE_UNKNOWN"
    assert "pod, stream" in why
    assert "input.machine" in why
    assert "input.default_machine" in why


def test_a_wrong_time_is_named_with_its_field_and_what_is_accepted() -> None:
    ((_, code, why),) = decoded(decoder("shipped-logs"), b'{"message":"no","host":"a","time":"soon"}').refused
    assert code == "FIELD_INVALID"
    assert "time" in why
    assert "'soon'" in why
    assert "accepted" in why
