"""What the incidents job is told beside novelties: topology, acknowledgements, and that nothing is received."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from engine.spec.record import Date, Keyword, Prose, Record

MOST_DEPENDENCIES = 500
"""The most names in `Placement.depends_on`."""


class Placement(Record):
    """A machine's place in the topology: the `topology` topic (JSON); a later message on a machine replaces it.

    Without `parent` and `depends_on` the machine has no place any more.
    """

    identity: ClassVar[tuple[str, ...]] = ("entity",)

    entity: Keyword = Field(alias="host.name", min_length=1, max_length=512, description="the machine, such as a VM")
    parent: Keyword | None = Field(
        None,
        min_length=1,
        max_length=512,
        description="what it runs on, such as its host, or the switch of a host; absent: nothing that is known",
    )
    depends_on: list[Annotated[Keyword, Field(min_length=1, max_length=512)]] = Field(
        default_factory=list,
        max_length=MOST_DEPENDENCIES,
        description="what else it depends on, such as the services that it calls and their databases",
    )
    moved_from: Keyword | None = Field(
        None,
        min_length=1,
        max_length=512,
        description="what it ran on until then; what changes on either of the two then is one incident",
    )
    moved: Date | None = Field(
        None, description="event time of that move, if what else it depends on was said since; absent: `@timestamp`"
    )
    time: Date = Field(alias="@timestamp", description="event time from which on it holds")

    @property
    def effective_from(self) -> int:
        """The event time from which on it holds, epoch milliseconds."""
        return self.time

    @property
    def moved_at(self) -> int:
        """The event time until which it ran on `moved_from`, epoch milliseconds."""
        return self.time if self.moved is None else self.moved

    @property
    def above(self) -> tuple[str, ...]:
        """All that it depends on: what it runs on first.

        >>> Placement(entity="web", parent="host", depends_on=["db", "host"], time=1_767_571_200_000).above
        ('host', 'db')
        """
        return tuple(name for name in dict.fromkeys((self.parent, *self.depends_on)) if name)


class Acknowledgement(Record):
    """An operator looks after an incident: the `acknowledgements` topic (JSON); a later message replaces it."""

    identity: ClassVar[tuple[str, ...]] = ("incident",)

    incident: str = Field(alias="event.id", min_length=1, max_length=64, description="id of the incident")
    time: Date = Field(alias="@timestamp", description="event time at which it was given")
    active: bool = Field(True, description="`false`: the acknowledgement is taken back")
    by: Keyword = Field("", alias="user.name", max_length=256, description="the operator")
    note: Prose = Field("", max_length=4_096, description="a remark of the operator")

    @property
    def effective_from(self) -> int:
        """The event time at which it was given, epoch milliseconds."""
        return self.time


ALL_INPUTS = "*"
"""The `Silence.input` of the silence of all inputs together."""


class Silence(Record):
    """Nothing arrived on an input: the `silences` topic (JSON), which the process writes that sends the heartbeats.

    It is written when the silence is noticed, every minute while it lasts, and when it has ended; a later message on
    the same silence replaces the earlier one. All times are those at which Kafka took in records and heartbeats.
    """

    identity: ClassVar[tuple[str, ...]] = ("input", "since")

    input: Keyword = Field(
        min_length=1, max_length=249, description="the topic of agents that is silent, with its namespace; `*`: all"
    )
    since: Date = Field(description="when its last record arrived")
    noticed: Date = Field(description="when heartbeats had gone on for `incidents.silence` without a record")
    time: Date = Field(alias="@timestamp", description="the heartbeat up to which this is known")
    until: Date | None = Field(None, description="when a record arrived again; absent while nothing does")

    @property
    def effective_from(self) -> int:
        """The time up to which this is known, epoch milliseconds."""
        return self.time

    @property
    def is_of_all(self) -> bool:
        """True for the silence of all inputs together."""
        return self.input == ALL_INPUTS
