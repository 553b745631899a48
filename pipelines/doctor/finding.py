"""A finding: something that is wrong, or soon will be, with a stable code and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is; the worst one comes first."""

    BROKEN = "broken"
    """Something does not work now, or the next start will be refused."""
    AT_RISK = "at risk"
    """Everything works, but data or results are lost or delayed, or soon will be."""
    NOTE = "note"
    """Nothing is lost; something may not be as intended."""


@dataclass(frozen=True)
class Kind:
    """A kind of finding.

    Attributes:
        code: Its name, in UPPER_SNAKE case, which never changes its meaning. Where a start would be refused for the
            same reason, it is the code of that error.
        severity: How bad it is.
        means: What was found, for a reader of docs/troubleshooting.md.
        do: What the reader can do about it.
        subject: The heading under which docs/troubleshooting.md lists it.
    """

    code: str
    severity: Severity
    means: str
    do: str
    subject: str


KINDS: dict[str, Kind] = {}
"""All kinds of findings of the checks imported so far, by code."""


def subject(title: str) -> Callable[[str, Severity, str, str], Kind]:
    """A function that registers kinds of findings under one heading: code, severity, what it means, what to do.

    >>> subject("Elsewhere")("KAFKA_UNREACHABLE", Severity.NOTE, "another meaning", "nothing")
    Traceback (most recent call last):
        ...
    LookupError: KAFKA_UNREACHABLE is registered already
    """

    def register(code: str, severity: Severity, means: str, do: str) -> Kind:
        if code in KINDS:
            raise LookupError(f"{code} is registered already")
        return KINDS.setdefault(code, Kind(code, severity, means, do, title))

    return register


@dataclass(frozen=True)
class Finding:
    """Something that a check found.

    Attributes:
        kind: Its code and severity.
        what: What was found, with the values.
        where: The setting, file, topic, index or process that it is about.
        do: What to do in this case; empty: what the kind says.
    """

    kind: Kind
    what: str
    where: str
    do: str = ""

    @property
    def code(self) -> str:
        """The code of its kind."""
        return self.kind.code

    def to_dict(self) -> dict[str, str]:
        """Plain data for JSON."""
        return {
            "code": self.code,
            "severity": str(self.kind.severity),
            "what": self.what,
            "where": self.where,
            "do": self.do or self.kind.do,
        }
