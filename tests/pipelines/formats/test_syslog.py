"""Syslog of machines and devices, against expectations worked out by hand from the RFCs and the makers' references."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pipelines.contracts.records import Log
from pipelines.contracts.settings.input import InputSettings
from pipelines.formats.any_format import AnyFormatDecoder
from pipelines.formats.catalogue import guess
from pipelines.formats.rules import Rules
from tests.pipelines.formats.decoding import decoded, log_lines, rows

ARRIVED = 1_795_220_900_000  # 2026-11-21T00:28:20Z


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def read(
    *messages: bytes, arrived: int = ARRIVED, topic: str = "logs.agents", **settings: str
) -> list[tuple[str, ...]]:
    """(time, machine, program, text) of each line in a topic with such settings; no message may be refused."""
    rules = Rules.of(InputSettings(**settings), topic)
    found = decoded(AnyFormatDecoder(Log, rules), *messages, arrived=arrived)
    assert found.refused == []
    told = [(row["time"], row["entity"], row["program"], row["message"]) for row in rows(found)]
    return [(datetime.fromtimestamp(time / 1000, UTC).isoformat(), *rest) for time, *rest in told]


def refused(message: bytes, **settings: Any) -> tuple[str, str]:
    rules = Rules.of(InputSettings(**settings), "logs.agents")
    found = decoded(AnyFormatDecoder(Log, rules), message, arrived=ARRIVED)
    ((_, code, why),) = found.refused
    assert found.records.num_rows == 0
    return code, why


NO_HOST = [
    (
        b"<134>Nov 20 09:07:30 haproxy[14389]: 192.0.2.7:33317 [20/Nov/2026] http-in",
        "haproxy",
        "192.0.2.7:33317 [20/Nov",
    ),
    (b"<13>Nov 20 09:07:30 cron: hello there", "cron", "hello there"),
    (b"<30>Nov 20 09:07:30 docker/8d1b[77]: up", "docker/8d1b", "up"),
    (b"<30>Nov 20 09:07:30 web[77] up and running", "", ""),
]


@pytest.mark.parametrize(("message", "program", "begin"), NO_HOST[:3])
def test_a_line_without_a_host_name_is_refused_unless_a_setting_names_the_machine(
    message: bytes, program: str, begin: str
) -> None:
    code, why = refused(message)
    assert code == "MACHINE_UNKNOWN"
    assert "input.default_machine" in why
    ((_, machine, found, text),) = read(message, default_machine="other=x,logs.*=lb-1")
    assert (machine, found, text[: len(begin)]) == ("lb-1", program, begin)


def test_a_part_with_a_process_id_is_never_a_machine() -> None:
    code, _ = refused(NO_HOST[3][0])
    assert code in ("MACHINE_UNKNOWN", "LINE_INVALID")


def test_a_time_without_a_zone_is_of_the_zone_of_the_setting_by_machine_or_topic() -> None:
    lines = (
        b"<13>Nov 21 01:27:00 web-1 app: a",
        b"<13>Nov 20 19:27:00 ny-1 app: b",
        b"<13>2026-11-21T01:27:00 web-1 app: c",
    )
    found = read(*lines, timezone="ny-*=America/New_York,logs.agents=Europe/Stockholm")
    assert [time for time, *_ in found] == ["2026-11-21T00:27:00+00:00"] * 3
    summer = read(b"<13>Jul 21 02:27:00 web-1 app: a", timezone="Europe/Stockholm")
    assert summer[0][0] == "2026-07-21T00:27:00+00:00", "in summer Stockholm is two hours east of UTC"
    offset = read(b"<13>2026-11-21T01:27:00+01:00 web-1 app: a", timezone="America/New_York")
    assert offset[0][0] == "2026-11-21T00:27:00+00:00", "an offset in the line counts"


def test_a_time_of_another_zone_is_refused_with_the_zone_and_the_setting() -> None:
    code, why = refused(b"<13>Nov 21 01:27:00 web-1 app: a")
    assert code == "TIME_AHEAD"
    assert "UTC" in why
    assert "59 minutes" in why
    assert "input.timezone" in why
    assert "web-1" in why


@pytest.mark.parametrize(
    ("given", "arrived", "meant"),
    [
        ("Feb  5 17:32:18", "2026-11-27T00:00:00+00:00", "2026-02-05T17:32:18+00:00"),
        ("Dec  2 03:00:00", "2026-11-27T00:00:00+00:00", "2025-12-02T03:00:00+00:00"),
        ("Dec 31 23:59:59", "2027-01-01T00:00:01+00:00", "2026-12-31T23:59:59+00:00"),
        ("Jan  1 00:00:01", "2026-12-31T23:59:59+00:00", "2027-01-01T00:00:01+00:00"),
        ("Feb 29 12:00:00", "2026-11-27T00:00:00+00:00", "2024-02-29T12:00:00+00:00"),
    ],
)
def test_a_time_without_a_year_is_the_last_one_that_is_not_ahead(given: str, arrived: str, meant: str) -> None:
    ((time, *_),) = read(f"<13>{given} web-1 app: a".encode(), arrived=at(arrived))
    assert time == meant


def test_what_is_no_utf_8_is_read_as_windows_1252_and_utf_8_beside_it_is_kept() -> None:
    line = b"<13>Nov 20 09:07:30 web-1 app: Gr\xf6\xdfe, "
    assert read(line + "Größe".encode())[0][3] == "Größe, Größe"


def test_messages_with_their_length_before_them_are_lines_each() -> None:
    one, two = b"<13>Nov 20 09:07:30 host app: Test", b"<14>1 2026-11-20T09:07:30Z host app - - - two\nlines"
    framed = b"".join(b"%d %s" % (len(each), each) for each in (one, two))
    assert [text for *_, text in read(framed)] == ["Test", "two\nlines"]
    assert [text for *_, text in read(b"%d %s" % (len(one), one))] == ["Test"]
    code, why = refused(b"3 <13>Nov 20 09:07:30 host app: Test")
    assert code == "LINE_INVALID"
    assert why


def test_structured_data_without_a_text_is_the_text() -> None:
    example_4 = (
        b'<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" '
        b'eventSource="Application" eventID="1011"][examplePriority@32473 class="high"]'
    )
    ((_, _, program, severity, text),) = log_lines("syslog", example_4)
    assert (program, severity) == ("evntslog", 5)
    assert text.startswith('[exampleSDID@32473 iut="3"')
    assert text.endswith('class="high"]')


DEVICES = [
    (
        b"<189>7662: Nov 20 22:23:27.921: %SEC_LOGIN-5-LOGIN_SUCCESS: Login Success",
        ("2026-11-20T22:23:27.921000+00:00", "dflt", "SEC_LOGIN", "%SEC_LOGIN-5-LOGIN_SUCCESS: Login Success"),
    ),
    (
        b"<187>45: 000123: r1.example.com: *Nov 20 10:50:11.123 CET: %LINK-3-UPDOWN: Interface Gi0/1 is up",
        ("2026-11-20T09:50:11.123000+00:00", "r1.example.com", "LINK", "%LINK-3-UPDOWN: Interface Gi0/1 is up"),
    ),
    (
        b"<166>May 21 2026 10:50:11: %ASA-6-302013: Built outbound",
        ("2026-05-21T10:50:11+00:00", "dflt", "ASA", "%ASA-6-302013: Built outbound"),
    ),
    *(
        (line, ("2026-05-21T10:50:11+00:00", "asa-1", "ASA", "%ASA-6-302013: Built outbound"))
        for line in (
            b"<166>May 21 2026 10:50:11 asa-1 : %ASA-6-302013: Built outbound",
            b"<166>May 21 10:50:11 asa-1 %ASA-6-302013: Built outbound",
            b"<166>2026-05-21T10:50:11Z asa-1 : %ASA-6-302013: Built outbound",
        )
    ),
    (
        b'<189>date=2026-11-20 time=10:07:30 devname="FGT60" devid="FG100" logid="0013" type="traffic" level="notice" '
        b'eventtime=1795165650123456789 tz="+0100" srcip=10.0.0.1 msg="a b"',
        ("2026-11-20T09:07:30.123000+00:00", "FGT60", "traffic",
         'type="traffic" level="notice" srcip=10.0.0.1 msg="a b"'),
    ),
    (
        b"<189>date=2026-11-20 time=10:07:30 tz=+0100 devname=fw-1 devid=FG1 type=event action=login",
        ("2026-11-20T09:07:30+00:00", "fw-1", "event", "type=event action=login"),
    ),
    (
        b"<30>Nov 20 09:07:30 U7PG2,788a20aabbcc,v4.3.20.11298: hostapd: ath0: STA associated",
        ("2026-11-20T09:07:30+00:00", "788a20aabbcc", "hostapd", "ath0: STA associated"),
    ),
    (
        b'<30>Nov 20 09:07:30 ("U7LT,788a20aabbcc,v3.9.15.8011") kernel: [1.2] wifi',
        ("2026-11-20T09:07:30+00:00", "788a20aabbcc", "kernel", "[1.2] wifi"),
    ),
    (
        b"<30>Nov 20 09:07:30 ap-1 U7PG2,788a20aabbcc,v4.3.20: hostapd[12]: x",
        ("2026-11-20T09:07:30+00:00", "ap-1", "hostapd", "x"),
    ),
    (
        b"<165>Aug 24 05:34:00 CST 2026 mymachine myproc[10]: %% It's time",
        ("2026-08-24T11:34:00+00:00", "mymachine", "myproc", "%% It's time"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("message", "line"), DEVICES)
def test_devices_that_depart_from_the_rfcs_are_read(message: bytes, line: tuple[str, ...]) -> None:
    form = guess(message)
    assert form is not None
    assert form.name == "syslog"
    assert read(message, default_machine="dflt") == [line]
