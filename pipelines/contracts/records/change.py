"""A change of a site: a deployment, a new configuration, a restart, a feature flag."""

from __future__ import annotations

from hashlib import blake2b
from typing import ClassVar, Literal

from pydantic import Field

from engine.spec.record import Date, Keyword, Prose, Record
from pipelines.contracts.globs import Glob

ChangeKind = Literal[
    "deployment", "configuration", "restart", "feature_flag", "ended", "ending", "cordon", "uncordon", "other"
]
OF_DRAINS: frozenset[ChangeKind] = frozenset({"cordon", "uncordon"})
"""What begins and ends the drain of a node."""
OF_SINGLE_MACHINES: frozenset[ChangeKind] = frozenset({"ended", "ending", *OF_DRAINS})
"""What explains silence: an agent may say it of machines by their names only."""

LONGEST = 7 * 86_400_000
"""A change whose end is later is taken to have ended so long after it began, milliseconds; so is a drain."""

MOST_MACHINES = 100
"""The most names in `Change.machines`."""
_LONGEST_ID = 256


def id_of(text: str) -> str:
    """A text as the id of a change: its hash if it is too long for one.

    >>> id_of("ci/17"), len(id_of("x" * 300))
    ('ci/17', 32)
    """
    return text if len(text) <= _LONGEST_ID else blake2b(text.encode(), digest_size=16).hexdigest()


class Change(Record):
    """Something that was done at a site: the `changes` topic (JSON); a later message with the same id replaces it.

    Of two messages with one id that with the later `@timestamp` counts.
    """

    identity: ClassVar[tuple[str, ...]] = ("id",)

    id: Keyword = Field(
        alias="event.id", min_length=1, max_length=_LONGEST_ID, description="its name, from whoever reports it"
    )
    time: Date = Field(alias="@timestamp", description="event time at which it began")
    end: Date | None = Field(None, alias="event.end", description="when it had ended; absent: at once, or not known")
    kind: ChangeKind = Field(
        "other",
        alias="event.action",
        description="what was done; `ended`: its machines were ended on purpose, and their silence is no absence; "
        "`ending`: likewise, if they still sent something; `cordon` to `uncordon`: nothing new is placed on its "
        "machines, what they do is planned",
    )
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
    def revision(self) -> int:
        """Of two messages with one id that with the higher one counts."""
        return self.time

    @property
    def effective_from(self) -> int:
        """The event time at which it began, epoch milliseconds."""
        return self.time

    @property
    def over(self) -> int:
        """When it had ended, as far as is known, at most `LONGEST` after it began, epoch milliseconds of event time."""
        return min(max(self.time, self.end or 0), self.time + LONGEST)
