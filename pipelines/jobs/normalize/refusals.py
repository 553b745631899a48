"""Which messages cannot be used, wholly or in part, and the codes of the reasons that several formats share."""

from __future__ import annotations

from dataclasses import dataclass, field

Refused = tuple[int, str, str]
"""Index of the message, code, reason."""

FORMAT_UNKNOWN = "FORMAT_UNKNOWN"
LINE_INVALID = "LINE_INVALID"
MACHINE_UNKNOWN = "MACHINE_UNKNOWN"
MESSAGE_EMPTY = "MESSAGE_EMPTY"
TEXT_FIELD = "TEXT_FIELD"
TOO_MANY_PARTS = "TOO_MANY_PARTS"

NO_MACHINE = "no label names the machine; the setting input.machine says which labels may"
"""The reason with `MACHINE_UNKNOWN`."""


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
