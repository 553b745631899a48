"""A change of a site: a deployment, a new configuration, a restart, a feature flag."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from engine.spec.record import Date, Keyword, Prose, Record
from pipelines.contracts.globs import Glob

ChangeKind = Literal["deployment", "configuration", "restart", "feature_flag", "other"]

MOST_MACHINES = 100
"""The most names in `Change.machines`."""


class Change(Record):
    """Something that was done at a site: the `changes` topic (JSON); a later message with the same id replaces it.

    Of two messages with one id that with the later `@timestamp` counts.
    """

    identity: ClassVar[tuple[str, ...]] = ("id",)

    id: Keyword = Field(alias="event.id", min_length=1, max_length=256, description="its name, from whoever reports it")
    time: Date = Field(alias="@timestamp", description="event time at which it began")
    end: Date | None = Field(None, alias="event.end", description="when it had ended; absent: at once, or not known")
    kind: ChangeKind = Field("other", alias="event.action", description="what was done")
    message: Prose = Field(min_length=1, max_length=1_024, pattern=r"\S", description="what was done, in words")
    machines: list[Glob] = Field(
        default_factory=list,
        alias="host.name",
        max_length=MOST_MACHINES,
        description="globs of the machines on which it was done; empty: it was done to the site as a whole",
    )
    by: Keyword = Field("", alias="user.name", max_length=256, description="who did it")
    source: Keyword = Field("", alias="event.provider", max_length=512, description="what reported it")
    url: Keyword = Field("", alias="event.reference", max_length=1_024, description="where more is said of it")

    @property
    def effective_from(self) -> int:
        """The event time at which it began, epoch milliseconds."""
        return self.time

    @property
    def over(self) -> int:
        """The event time at which it had ended, as far as is known, epoch milliseconds."""
        return max(self.time, self.end or 0)
