r"""The decoder of DogStatsD's events and service checks: each is a log line.

Source: the datagram format of DogStatsD: ``_e{5,4}:title|text|d:1795220820|h:web-1|t:error|s:chef|#k:v`` (the lengths
are bytes), and ``_sc|name|2|d:1795220820|h:web-1|#k:v|m:message``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.formats.instants import moment
from pipelines.formats.labels import LABELS, LabelRule
from pipelines.formats.line_decoder import NO_PROGRAM, Line, LineDecoder
from pipelines.formats.refusals import LINE_INVALID, MACHINE_UNKNOWN, RefusedError, no_machine

_EVENT = re.compile(rb"_e\{([0-9]{1,6}),([0-9]{1,6})\}:")
_CHECK = re.compile(rb"_sc\|([^|]+)\|([0-3])(?=\||$)")
_ALERTS = {"error": 3, "warning": 4, "info": 6, "success": 6}
_STATUSES = (("OK", 6), ("WARNING", 4), ("CRITICAL", 2), ("UNKNOWN", 5))
_ACCEPTED = "accepted: _e{bytes of title,bytes of text}:title|text|h:host or _sc|name|0 to 3|h:host"


def begins(value: bytes) -> bool:
    """Whether a message begins with an event or a service check."""
    return value.startswith((b"_e{", b"_sc|"))


@dataclass(frozen=True)
class StatsdEventsDecoder(LineDecoder):
    """Decodes messages of lines that are events or service checks.

    The program of an event is its source (``s:``), else the tag ``service``; that of a check its name.

    Args:
        labels: Which tags name the machine, where ``h:`` does not.
    """

    labels: LabelRule = LABELS

    def parsed(self, value: bytes) -> Any:
        return [line.strip(b"\r") for line in value.split(b"\n") if line.strip()]

    def lines(self, message: Any, arrived: int) -> Iterator[Line]:
        for number, line in enumerate(message, 1):
            event = _EVENT.match(line)
            parts = _event(line, event) if event else _check(line)
            if parts is None:
                raise RefusedError(LINE_INVALID, f"line {number}: {_ACCEPTED}")
            program, severity, text, rest = parts
            fields = {each[:2]: each[2:] for each in rest if each[1:2] == ":"}
            tags = _tags(rest)
            machine = self.labels.pod_of(tags) or fields.get("h:") or self.labels.machine_of(tags)
            if not machine:
                raise RefusedError(MACHINE_UNKNOWN, no_machine(tags))
            time = moment(fields["d:"]) if fields.get("d:") else arrived
            if event:
                program = fields.get("s:") or tags.get("service") or NO_PROGRAM
                severity = _ALERTS.get(fields.get("t:", ""), severity)
            elif fields.get("m:"):
                text += f": {fields['m:']}"
            yield time, machine, program, severity, text.replace("\\n", "\n")


def _tags(rest: list[str]) -> dict[str, str]:
    pairs = (tag.partition(":") for each in rest if each[:1] == "#" for tag in each[1:].split(","))
    return {key: value for key, _, value in pairs}


def _event(line: bytes, head: re.Match[bytes]) -> tuple[str, int, str, list[str]] | None:
    """Program, severity, text and further fields of an event; ``None`` if its lengths are not true."""
    title_end = head.end() + int(head[1])
    text_end = title_end + 1 + int(head[2])
    after = line[text_end : text_end + 1]
    if line[title_end : title_end + 1] != b"|" or text_end > len(line) or after not in (b"", b"|"):
        return None
    title, text = line[head.end() : title_end].decode(), line[title_end + 1 : text_end].decode()
    whole = f"{title}: {text}" if title and text else title or text
    return NO_PROGRAM, 6, whole, line[text_end + 1 :].decode().split("|")


def _check(line: bytes) -> tuple[str, int, str, list[str]] | None:
    """Program, severity, text and further fields of a service check; ``None`` if it is none."""
    head = _CHECK.match(line)
    if head is None:
        return None
    name, (status, severity) = head[1].decode(), _STATUSES[int(head[2])]
    rest, mark, message = line[head.end() :].decode().partition("|m:")  # the last field, which may hold bars
    return name, severity, f"{name} is {status}", [*rest.split("|"), *([f"m:{message}"] if mark else [])]
