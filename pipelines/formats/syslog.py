"""The decoder of syslog messages as they are on the wire: RFC 5424, RFC 3164 (BSD), and how devices depart from it.

Sources of the forms that follow neither RFC: Cisco's "System Message Logging" (sequence numbers, ``*`` and ``.`` before
times of clocks that are not set, ``logging timestamp`` with year and milliseconds, ``logging origin-id``), Fortinet's
log reference (``key=value``).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.line_decoder import Line, LineDecoder
from pipelines.formats.refusals import LINE_INVALID, MACHINE_UNKNOWN, RefusedError
from pipelines.formats.syslog_times import UTC, Zones

_DeviceLine = tuple[str, str, str, int, str]
"""(time as it stands there or ``-``, machine or nothing, program, priority, text)"""

_CISCO = re.compile(
    r"<(?P<priority>[0-9]{1,3})>(?:[0-9]*: ){0,2}+"
    r"(?:(?P<host>(?![0-9]{4} [A-Z])[A-Za-z0-9_][\w.-]*)(?:: | (?=[*.]?[A-Z][a-z]{2} )))?(?:[0-9]+: )?"
    r"(?:[*.]?(?P<time>(?:[0-9]{4} )?[A-Z][a-z]{2} {1,2}[0-9]{1,2}(?: [0-9]{4})? "
    r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?: [A-Z]{1,5})?)|(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2}T\S+?))?"
    r"(?: (?P<name>[A-Za-z0-9_][\w.-]*)(?= ?:| %))?:? ?:? ?"
    r"(?P<text>%(?P<program>[A-Z][A-Z0-9_]*)(?:-[A-Z0-9_]+)*-[0-7]-[A-Z0-9_]+: ?.*)",
    re.DOTALL,
)
_FORTINET = re.compile(r"<([0-9]{1,3})>(?=(?:[a-z_]+=(?:\"[^\"]*\"|\S*) +){0,8}dev(?:name|id)=)(.*)", re.DOTALL)
_PAIR = re.compile(r'([A-Za-z_]\w*)=(?:"([^"]*)"|(\S*))')
_ABOUT = frozenset(("date", "time", "devname", "devid", "eventtime", "tz", "logid", "timestamp"))
_UBIQUITI = re.compile(
    r"<(?P<priority>[0-9]{1,3})>(?:(?P<time>[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}) )?"
    r"(?:(?P<host>[^\s:,(\"]+) )?[(\"]*[A-Za-z0-9-]+,(?P<mac>[0-9a-fA-F]{12}),v?[0-9][\w.+-]*[)\"]*:? ?:? "
    r"(?:(?P<program>[^\s:\[]{1,100})(?:\[[^\]\s]*\])?: ?)?(?P<text>.*)",
    re.DOTALL,
)
_PRIORITY = r"<(?P<priority>[0-9]{1,3})>"
_5424 = re.compile(
    _PRIORITY + r"1 (?P<time>\S+) (?P<host>\S+) (?P<program>\S+) \S+ \S+ "
    r'(?P<data>-|(?:\[(?:[^\]"\\]++|\\.|"(?:[^"\\]++|\\.)*+")*+\])++)(?: (?P<text>.*))?',
    re.DOTALL,
)
"""Possessive, as the repetitions of a group are otherwise all remembered, at 200 bytes each."""
_3164 = re.compile(
    _PRIORITY + r"(?P<time>[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}(?: [A-Z]{3,4})?(?: [0-9]{4})?"
    r"|[0-9]{4}-\S+) (?P<host>\S*[^\s:]) "
    r"(?:(?P<program>[^\s:\[]{1,100})(?:\[[^\]\s]*\])?: ?)?(?P<text>.*)",
    re.DOTALL,
)
_NO_HOST = re.compile(
    _PRIORITY + r"(?P<time>[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]{4}-\S+) "
    r"(?P<program>[^\s:\[]{1,100})(?:\[[^\]\s]*\])?: ?(?P<text>.*)",
    re.DOTALL,
)
"""Without a host name, as HAProxy, Docker and /dev/log write it: what stands in its place is a tag, which ends with a
colon or has a process id in brackets. A host's name can have neither."""
_FRAME = re.compile(rb"([1-9][0-9]{0,5}) (?=<)")
_MARK = "\ufeff"
_ACCEPTED = "accepted: <34>1 2026-11-21T00:27:00Z host program pid id - text, or <34>Nov 21 00:27:00 host program: text"


def _of_device(message: str) -> _DeviceLine | None:
    """What a message of Cisco IOS and ASA, FortiGate or Ubiquiti holds; ``None`` if it has none of their forms.

    >>> _of_device("<189>7662: r1: *Nov 23 22:23:27.921: %SYS-5-CONFIG_I: Configured")
    ('Nov 23 22:23:27.921', 'r1', 'SYS', 189, '%SYS-5-CONFIG_I: Configured')
    """
    if "%" in message[:160] and (match := _CISCO.fullmatch(message)):
        time, host = match["time"] or match["iso"] or "-", match["host"] or match["name"] or ""
        return time, host, match["program"], int(match["priority"]), match["text"]
    if match := _FORTINET.fullmatch(message):
        return _fortinet(int(match[1]), match[2])
    if "," in message[:160] and (match := _UBIQUITI.fullmatch(message)):
        machine = match["host"] or match["mac"].lower()
        return match["time"] or "-", machine, match["program"] or "", int(match["priority"]), match["text"]
    return None


def _fortinet(priority: int, text: str) -> _DeviceLine:
    pairs = {name: quoted or plain for name, quoted, plain in _PAIR.findall(text)}
    rest = " ".join(whole[0] for whole in _PAIR.finditer(text) if whole[1] not in _ABOUT)
    date, clock, zone = pairs.get("date", ""), pairs.get("time", ""), pairs.get("tz", "")
    time = pairs.get("eventtime", "")
    if not (time.isascii() and time.isdigit() and len(time) in (10, 13, 16, 19)):
        offset = f"{zone[:3]}:{zone[-2:]}" if re.fullmatch(r"[+-][0-9]{4}", zone) else ""
        time = f"{date}T{clock}{offset}" if date and clock else "-"
    return time, pairs.get("devname") or pairs.get("devid", ""), pairs.get("type") or "fortigate", priority, rest


def _of_windows(error: UnicodeError) -> tuple[str, int]:
    """Reads the bytes that are no UTF-8 as Windows-1252, of which Latin-1 is a part."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("windows-1252", "replace"), error.end


codecs.register_error("windows-1252", _of_windows)


@dataclass(frozen=True)
class SyslogDecoder(LineDecoder):
    """Decodes a message each, such as ``<34>1 2026-11-21T00:27:00.013Z a su - - - no``, or several with their lengths.

    RFC 3164 has neither year nor zone: the zone is a setting, and the year the one that brings the time next to the
    message's arrival, but not ahead of it.

    Args:
        labels: Which machine wrote lines without a host name, if any.
        zones: The zones of times that name none.

    >>> list(SyslogDecoder().lines(b"<34>Nov 21 00:27:00 a su[7]: no", 1795220900000))
    [(1795220820000, 'a', 'su', 2, 'no')]
    """

    labels: LabelRule = LABELS
    zones: Zones = UTC

    def parsed(self, value: bytes) -> Any:
        return value

    def lines(self, message: bytes, arrived: int) -> Iterator[Line | None]:
        for each in (message,) if message[:1] == b"<" else _framed(message):
            yield self._line(each.decode(errors="windows-1252").strip("\r\n\0 "), arrived)

    def _line(self, message: str, arrived: int) -> Line | None:
        match = _5424.fullmatch(message)
        host = match["host"] if match else ""
        if match is not None:
            text = match["text"] or ("" if match["data"] == "-" else match["data"])
        else:
            match = _3164.fullmatch(message)
            if match is None or message.find("%", 0, 160) > 0 or message.find(",", 0, 80) > 0:
                device = _of_device(message)
                if device is not None:
                    return self._finished(*device, arrived)
            host = match["host"] if match else ""
            if match is None or host.find("[") > 0:  # a tag with a process id
                host, match = "", _NO_HOST.fullmatch(message)
            text = match["text"] if match else ""
        if match is None or int(match["priority"]) > 191:
            raise RefusedError(LINE_INVALID, f"no syslog message; {_ACCEPTED}: {message[:80]!r}")
        host, program = "" if host == "-" else host, match["program"] or ""
        return self._finished(
            match["time"], host, "" if program == "-" else program, int(match["priority"]), text, arrived
        )

    def _finished(self, time: str, host: str, program: str, priority: int, text: str, arrived: int) -> Line | None:
        text = text.removeprefix(_MARK).strip()
        if not text:
            return None
        machine = host or self.labels.default
        if not machine:
            why = "the message has no host name; let its sender add it, or name its machine by input.default_machine"
            raise RefusedError(MACHINE_UNKNOWN, f"{why}: {text[:80]!r}")
        at = arrived if time == "-" else self.zones.moment(time, machine, arrived)
        return at, machine, program, priority % 8, text


def _framed(message: bytes) -> Iterator[bytes]:
    """The messages of a stream in which the length stands before each (RFC 6587); else the message itself."""
    at, frame = 0, _FRAME.match(message)
    if frame is None:
        yield message
    while frame is not None:
        begin = frame.end()
        at = begin + int(frame[1])
        yield message[begin:at]
        at += len(message[at:]) - len(message[at:].lstrip(b"\r\n\0 ")) if at < len(message) else 0
        frame = _FRAME.match(message, at)
    if 0 < at < len(message):
        raise RefusedError(LINE_INVALID, f"byte {at}: no length of a message (RFC 6587): {message[at : at + 40]!r}")
