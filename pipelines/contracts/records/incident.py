"""Novelties of one machine that belong together."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Record


class Incident(Record):
    """Novelties of one machine that belong together. Fields only: the incidents job comes later."""

    identity: ClassVar[tuple[str, ...]] = ("id",)

    id: str = Field(alias="event.id", description="deterministic identity: machine and onset")
    entity: Keyword = Field(alias="host.name", description="the machine")
    start: Instant = Field(alias="event.start", description="onset")
    end: Instant | None = Field(None, alias="event.end", description="end; absent while open")
    status: Literal["open", "closed"] = Field("open", description="whether it lasts")
    record_score: Finite = Field(0.0, ge=0, le=100, description="highest score in it")
    revision: int = Field(0, description="grows with each change")
