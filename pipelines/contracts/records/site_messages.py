"""What the incidents job is told beside novelties: topology, acknowledgements, and that nothing is received."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from engine.columns.replicas import replicas_of
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
    workload: Keyword | None = Field(
        None,
        min_length=1,
        max_length=512,
        description="what it is a replica of, such as the deployment of a pod as `namespace/name`; absent: what its "
        "name says, if Kubernetes or Swarm generated it",
    )
    time: Date = Field(alias="@timestamp", description="event time from which on it holds")

    @property
    def effective_from(self) -> int:
        """The event time from which on it holds, epoch milliseconds."""
        return self.time

    @property
    def replica_of(self) -> str | None:
        """The workload; if none is said, what `replicas_of` reads from the name.

        >>> Placement(entity="shop/cart-7d4b9c6f5-x2x7p", time=1_767_571_200_000).replica_of
        'shop/cart'
        """
        return self.workload or replicas_of(self.entity)

    @property
    def is_empty(self) -> bool:
        """Whether the machine has no place any more.

        >>> Placement(entity="web", time=1_767_571_200_000).is_empty
        True
        """
        return not (self.parent or self.depends_on or self.workload)

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


class InferredPlacement(Placement):
    """A machine's place as telemetry tells it: the `places` topic (JSON), which the job of this name writes.

    What `Placement` says of the machine counts before it. One that says nothing: the machine has not been heard of for
    long, or no longer where it is.
    """


def together(said: Placement | None, inferred: Placement | None) -> Placement:
    """One placement of what people say and what telemetry tells, one of which there is.

    What people say counts, each thing by itself, until they take it back: then they no longer say it.

    >>> said = Placement(entity="web", depends_on=["db"], time=1_767_571_200_000)
    >>> both = together(said, InferredPlacement(entity="web", parent="n1", depends_on=["x"], time=1_767_571_300_000))
    >>> both.parent, both.depends_on
    ('n1', ['db'])
    """
    if said is None or inferred is None:
        found = said or inferred
        assert found is not None
        return found
    on = said if said.parent else inferred
    return Placement(
        entity=said.entity,
        parent=on.parent,
        depends_on=said.depends_on or inferred.depends_on,
        moved_from=on.moved_from,
        moved=on.moved_at if on.moved_from else None,
        workload=said.workload or inferred.workload,
        time=max(said.time, inferred.time),
    )


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
