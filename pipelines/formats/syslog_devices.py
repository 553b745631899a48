"""The forms of syslog of network devices that follow neither RFC: Cisco IOS and ASA, FortiGate, Ubiquiti.

Sources: Cisco's "System Message Logging" (sequence numbers, ``*`` and ``.`` before times of clocks that are not set,
``logging timestamp`` with year and milliseconds, ``logging origin-id``), Fortinet's log reference (``key=value``).
"""

from __future__ import annotations

import re

DeviceLine = tuple[str, str, str, int, str]
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


def of_device(message: str) -> DeviceLine | None:
    """What a message of a device holds; ``None`` if it has none of the forms.

    >>> of_device("<189>7662: r1: *Nov 23 22:23:27.921: %SYS-5-CONFIG_I: Configured")
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


def _fortinet(priority: int, text: str) -> DeviceLine:
    pairs = {name: quoted or plain for name, quoted, plain in _PAIR.findall(text)}
    rest = " ".join(whole[0] for whole in _PAIR.finditer(text) if whole[1] not in _ABOUT)
    date, clock, zone = pairs.get("date", ""), pairs.get("time", ""), pairs.get("tz", "")
    time = pairs.get("eventtime", "")
    if not (time.isascii() and time.isdigit() and len(time) in (10, 13, 16, 19)):
        offset = f"{zone[:3]}:{zone[-2:]}" if re.fullmatch(r"[+-][0-9]{4}", zone) else ""
        time = f"{date}T{clock}{offset}" if date and clock else "-"
    return time, pairs.get("devname") or pairs.get("devid", ""), pairs.get("type") or "fortigate", priority, rest
