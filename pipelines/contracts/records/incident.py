"""An incident: the novelties of one machine that belong together."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from engine.spec.record import Finite, Instant, Keyword, Record


class Incident(Record):
    """The novelties of one machine that belong together. No job writes such records yet."""

    identity: ClassVar[tuple[str, ...]] = ("id",)

    id: str = Field(alias="event.id", description="deterministic identity: machine and onset")
    entity: Keyword = Field(alias="host.name", description="the machine")
    start: Instant = Field(alias="event.start", description="when the incident began")
    end: Instant | None = Field(None, alias="event.end", description="when the incident ended; absent while it is open")
    status: Literal["open", "closed"] = Field("open", description="`open` while the incident lasts")
    record_score: Finite = Field(0.0, ge=0, le=100, description="highest score of its novelties")
    revision: int = Field(0, description="grows by 1 with each change of the incident")
