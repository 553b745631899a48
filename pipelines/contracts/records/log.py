"""One line of a machine's log."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from engine.spec.record import Instant, Keyword, Prose, Record


class Log(Record):
    """One line of a machine's log, as the `logs` topic carries it."""

    identity: ClassVar[tuple[str, ...]] = ("entity", "program", "time", "message")

    time: Instant = Field(alias="@timestamp", description="event time: when the line was written")
    entity: Keyword = Field(alias="host.name", min_length=1, max_length=512, description="the machine")
    program: Keyword = Field("-", alias="process.name", max_length=512, description="the program that wrote the line")
    severity: int = Field(
        6,
        alias="log.syslog.severity.code",
        ge=0,
        le=8,
        description="syslog severity, from 0 (emergency) to 7 (debug); 8: a level that is not known",
    )
    message: Prose = Field(max_length=65_536, description="the text of the line")
