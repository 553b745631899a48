"""Which messages cannot be used, wholly or in part, and the codes of the reasons that several formats share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Refused = tuple[int, str, str]
"""Index of the message, code, reason."""

FORMAT_UNKNOWN = "FORMAT_UNKNOWN"
LABEL_KEPT = "LABEL_KEPT"
LINE_INVALID = "LINE_INVALID"
MACHINE_UNKNOWN = "MACHINE_UNKNOWN"
MESSAGE_EMPTY = "MESSAGE_EMPTY"
SAMPLE_TWICE = "SAMPLE_TWICE"
TEXT_FIELD = "TEXT_FIELD"
TIME_AHEAD = "TIME_AHEAD"
TOO_MANY_PARTS = "TOO_MANY_PARTS"

WITHOUT_LOSS = frozenset((LABEL_KEPT, MESSAGE_EMPTY, SAMPLE_TWICE, TEXT_FIELD))
"""Codes that say something of a message all of whose samples are used."""

_SHOWN = 12


def no_machine(labels: Iterable[str] = ()) -> str:
    """The reason with `MACHINE_UNKNOWN`.

    Args:
        labels: The names of the labels that are there.

    >>> no_machine(["job", "pod"])
    'no label names the machine; there are: job, pod; the setting input.machine says which may, and \
input.default_machine names the machine of a topic'
    >>> no_machine()
    'there is no label that could name the machine; the setting input.default_machine names the machine of a topic'
    """
    there = sorted({str(name)[:60] for name in labels})
    default = "input.default_machine names the machine of a topic"
    if not there:
        return f"there is no label that could name the machine; the setting {default}"
    shown = ", ".join(there[:_SHOWN]) + (", ..." if there[_SHOWN:] else "")
    return f"no label names the machine; there are: {shown}; the setting input.machine says which may, and {default}"


NO_MACHINE = no_machine()
"""The reason where nothing is known of labels."""


class RefusedError(ValueError):
    """Refuses a message with a code of its own."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass
class Refusals:
    """The messages that cannot be used, each with its first reason; and those of which a part cannot be used.

    Attributes:
        whole: Code and reason by index of the message; none of its samples are used.
        parts: Messages whose samples are used, but which also hold something that is no sample.
    """

    whole: dict[int, tuple[str, str]] = field(default_factory=dict)
    parts: list[Refused] = field(default_factory=list)

    def add(self, row: int, code: str, why: str) -> None:
        """Refuses a message; a later reason does not replace an earlier one."""
        self.whole.setdefault(row, (code, why))

    def all(self) -> list[Refused]:
        """All of them, in the order of the messages."""
        whole = [(row, code, why) for row, (code, why) in self.whole.items()]
        return sorted([*whole, *(part for part in self.parts if part[0] not in self.whole)])
