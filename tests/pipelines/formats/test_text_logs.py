"""Lines of log files, of containers, of web servers and of loggers, as their documentation and real files show them."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.contracts.records import Log
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.catalogue import guess
from pipelines.formats.line_times import without_year
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import RULES, decoded, log_lines, rows

LOGHUB = Path(__file__).parents[4] / "shared" / "data" / "loghub"
NOV_26 = int(datetime(2026, 11, 26, 9, 7, 30, tzinfo=UTC).timestamp() * 1000)


def read(*lines: str, rules: Rules = RULES, arrived: int = NOV_26) -> list[tuple[str, str, int, str]]:
    """(machine, program, severity, text) of lines in a topic of any formats; none may be refused."""
    found = decoded(AnyFormatDecoder(Log, rules), *(line.encode() for line in lines), arrived=arrived)
    assert found.refused == []
    return [(row["entity"], row["program"], row["severity"], row["message"]) for row in rows(found)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-11-26T09:07:30.123456+01:00 web-1 sshd[7]: error: no", ("web-1", "sshd", 6, "error: no")),
        ("2003-10-11T22:14:15.003Z mymachine.example.com su: 'su root' failed", None),
        ("Nov 26 09:07:30 web-1 sshd[7]: a=b c", ("web-1", "sshd", 6, "a=b c")),
        ("Nov  6 09:07:30 web-1 kernel: [    0.1] Linux", ("web-1", "kernel", 6, "[    0.1] Linux")),
        ("Nov  6 09:07:30 2001:db8::1 systemd[1]: x", ("2001:db8::1", "systemd", 6, "x")),
        ("Nov 26 09:07:30 web-1 last message repeated 2 times", ("web-1", "-", 6, "last message repeated 2 times")),
        ("Nov 26 09:07:30 haproxy[14389]: 192.0.2.7:33317 x", ("edge", "haproxy", 6, "192.0.2.7:33317 x")),
        ("Jun 19 04:09:11 combo syslogd 1.4.1: restart.", ("combo", "syslogd 1.4.1", 6, "restart.")),
        ("Jun 19 04:09:11 combo -- root[2421]: ROOT LOGIN", ("combo", "-- root", 6, "ROOT LOGIN")),
        ("2016-10-06T00:17:09.669794202Z stdout F Log entry 1", ("edge", "-", 6, "Log entry 1")),
        (r'{"log":"a \"q\" \u00e4\n","stream":"stderr","time":"2019-01-01T11:11:11.1Z"}', ("edge", "-", 6, 'a "q" ä')),
        (
            '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 503 2326',
            ("edge", "-", 3, '127.0.0.1 - frank "GET /a.gif HTTP/1.0" 503 2326'),
        ),
        ("[Sun Dec 04 04:47:44 2005] [notice] workerEnv.init() ok", ("edge", "-", 5, "workerEnv.init() ok")),
        ("2026/11/26 09:07:30 [error] 7#8: *1 open() failed", ("edge", "-", 3, "*1 open() failed")),
        (r'ts=1795220820 level=warn msg="no \"x\" level=error" host=web-1:80', ("web-1", "-", 4, 'no "x" level=error')),
        (
            '{"EventTime":"2026-11-26 09:00:00","Hostname":"WIN-1","Severity":"ERROR","SourceName":"Service Control",'
            '"Message":"it ended","EventID":7034}',
            ("WIN-1", "Service Control", 3, "it ended"),
        ),
        ("level=error msg=no app=shop instance=web-2", ("web-2", "shop", 3, "no")),
        (
            '{"version":"1.1","host":"web-1","short_message":"full","timestamp":1795683600,"level":3,"_app":"shop"}',
            ("web-1", "shop", 3, "full"),
        ),
    ],
)
def test_a_line_is_read_with_machine_program_severity_and_text(
    line: str, expected: tuple[str, str, int, str] | None
) -> None:
    expected = expected or ("mymachine.example.com", "su", 6, "'su root' failed")
    assert read(line) == [expected]


@pytest.mark.parametrize(
    ("line", "zone", "expected"),
    [
        ("2026-11-26T09:07:30.123456+01:00 a b: c", "Asia/Kolkata", "2026-11-26T08:07:30.123+00:00"),
        ("Nov 26 09:07:30 a b: c", "UTC", "2026-11-26T09:07:30+00:00"),
        ("Nov 26 10:07:30 a b: c", "Europe/Stockholm", "2026-11-26T09:07:30+00:00"),
        ("Jul  1 10:07:30 a b: c", "Europe/Stockholm", "2026-07-01T08:07:30+00:00"),
        ("Nov 26 2024 10:07:30 a b: c", "UTC", "2024-11-26T10:07:30+00:00"),
        ("2026/11/26 09:07:30 [error] 7#8: *1 no", "America/New_York", "2026-11-26T14:07:30+00:00"),
        ('a - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1', "UTC", "2000-10-10T20:55:36+00:00"),
        ("[Fri Sep 09 10:42:29.902022 2011] [core:error] [pid 7] no", "UTC", "2011-09-09T10:42:29.902+00:00"),
        ("time=1795220820.5 msg=no", "Asia/Kolkata", "2026-11-21T00:27:00.500+00:00"),
        ('time="2026-11-26 09:07:30,250" msg=no', "Europe/Stockholm", "2026-11-26T08:07:30.250+00:00"),
    ],
)
def test_a_time_is_read_in_the_zone_that_it_names_else_in_the_one_of_the_settings(
    line: str, zone: str, expected: str
) -> None:
    found = decoded(AnyFormatDecoder(Log, Rules(timezone=zone, machine="edge")), line.encode(), arrived=NOV_26)
    assert [row["time"] for row in rows(found)] == [round(datetime.fromisoformat(expected).timestamp() * 1000)]


@pytest.mark.parametrize(
    ("text", "arrived", "year"),
    [
        ("Dec 31 23:59:59", "2026-01-01T00:00:00", 2025),
        ("Feb  5 00:00:00", "2026-11-27T00:00:00", 2026),
        ("Dec  2 00:00:00", "2026-11-27T00:00:00", 2025),
        ("Nov 27 12:00:00", "2026-11-27T00:00:00", 2026),
        ("Feb 29 12:00:00", "2026-11-27T00:00:00", 2024),
        ("Feb 29 12:00:00", "2103-03-01T00:00:00", 2096),
    ],
)
def test_a_time_without_a_year_is_in_the_last_one_in_which_it_is_not_ahead(text: str, arrived: str, year: int) -> None:
    at = round(datetime.fromisoformat(f"{arrived}+00:00").timestamp() * 1000)
    assert datetime.fromtimestamp(without_year(text, at, "UTC") / 1000, UTC).year == year


def test_parts_of_a_text_that_follow_in_the_same_stream_and_message_are_joined() -> None:
    lines = "T stdout P one, \nT stderr F other\nT stdout F two\nT stdout P three".replace("T", "2016-10-06T00:17:09Z")
    assert [text for *_, text in read(lines)] == ["one, two", "other", "three"]
    docker = '{"log":"%s","stream":"stdout","time":"2019-01-01T11:11:11Z"}'
    assert [text for *_, text in read(docker % "one, " + "\n" + docker % "two\\n")] == ["one, two"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("2026-11-26T09:07:30Z stdout F no", "MACHINE_UNKNOWN"),
        ("Nov 26 09:07:30 haproxy[14389]: no", "MACHINE_UNKNOWN"),
        ("2026-11-26T09:07:30Z INFO main: no", "LINE_INVALID"),
        ("Nov 31 09:07:30 a b: no", "LINE_INVALID"),
        ("Nov 26 09:07:30 a b:", "LINE_INVALID"),
        ("Nov 26 09:07:30 a b: " + "x" * 70_000, "FIELD_INVALID"),
        ("Nov 26 09:07:30 " + "a" * 600 + " b: x", "FIELD_INVALID"),
    ],
)
def test_a_line_that_cannot_be_used_is_a_dead_letter_and_those_beside_it_are_used(message: str, code: str) -> None:
    alone = decoded(AnyFormatDecoder(Log), message.encode(), arrived=NOV_26)
    assert [each for _, each, _ in alone.refused] == [code]
    good = "Nov 26 09:07:30 a b: c"
    if guess(message.encode(), Log) == guess(good.encode(), Log):
        beside = decoded(AnyFormatDecoder(Log), f"{good}\n{message}\n{message}\n{good}".encode(), arrived=NOV_26)
        ((_, told, why),) = beside.refused
        assert (told, beside.records.num_rows) == (code, 2)
        assert why.startswith("line 2: ")
        assert why.endswith("; 1 more lines are left out")


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    found = decoded(AnyFormatDecoder(Log), "Nov 26 09:07:30 a b: grün".encode("latin-1"), arrived=NOV_26)
    assert [row["message"] for row in rows(found)] == ["gr\ufffdn"]


@pytest.mark.parametrize("name", ["Linux", "OpenSSH"])
def test_the_raw_lines_of_loghub_are_read_with_machine_program_time_and_text(name: str) -> None:
    path = LOGHUB / f"{name}_2k.log_structured.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there: recorded log lines lie beside the repository, in ../shared/data")
    with path.open(encoding="utf-8") as file:
        expected = list(csv.DictReader(file))
    linux = name == "Linux"
    lines, told = [], []
    for row in expected:
        month, day = (row["Month"], row["Date"]) if linux else (row["Date"], row["Day"])
        machine, program, pid = (
            (row["Level"], row["Component"], row["PID"]) if linux else (row["Component"], "sshd", row["Pid"])
        )
        tag = f"{program}[{pid}]" if pid else program
        lines.append(f"{month} {day:>2} {row['Time']} {machine} {tag}: {row['Content']}".encode())
        when = datetime.strptime(f"{month} {day} {row['Time']} 2026 +0000", "%b %d %H:%M:%S %Y %z")
        when = when if when.month < 12 else when.replace(year=2025)
        told.append((round(when.timestamp() * 1000), machine, program, 6, row["Content"].strip()))
    found = log_lines("log-file", *lines)
    assert found == told
    assert {guess(line, Log).name for line in lines} == {"log-file"}  # type: ignore[union-attr]
