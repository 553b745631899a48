"""What operators say to the pipeline through the console. Who serves the console says how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

VERDICTS = ("expected_change", "new_normal", "false_alarm", "true")
"""What a novelty may be said to have been; see docs/rules.md."""

LONGEST_MAINTENANCE = 30 * 24 * 60
"""The most minutes that a maintenance which is begun in the console may last."""

LONGEST_RULE = 366 * 24 * 60
"""The most minutes that a rule which is given in the console may last, if it has an end."""


class Actions(Protocol):
    """Writes what operators say to the topics of the pipeline, and reads what they have said.

    Each method that writes returns when Kafka has accepted the message. It raises `NewnormalError` if Kafka has not, or
    if the job that reads the message would refuse it: then nothing was written.
    """

    def label(self, entity: str, metric: str, start: int, verdict: str, note: str) -> int:
        """Says what a novelty was; returns the event time from which on that takes effect, epoch milliseconds.

        Args:
            entity: The machine.
            metric: The metric.
            start: When the novelty began, epoch milliseconds.
            verdict: One of `VERDICTS`.
            note: A remark.
        """

    def labels(self, series: Sequence[tuple[str, str, int]], verdict: str, note: str) -> int:
        """Says the same of the novelties of several series; returns from when on that takes effect, as `label`.

        Args:
            series: Of each: the machine, the metric, and when the novelty began, epoch milliseconds; at least one.
            verdict: One of `VERDICTS`.
            note: A remark.
        """

    def acknowledge(self, incident: str, active: bool, by: str, note: str) -> None:
        """Says that an operator looks after an incident (``active``), or no longer does.

        Args:
            incident: Its id.
            active: ``False`` takes an acknowledgement back.
            by: The operator.
            note: A remark.
        """

    def maintain(self, entity: str, minutes: int, note: str) -> tuple[str, int]:
        """Has the detector report and learn nothing of a machine for some minutes from now.

        Args:
            entity: The machine.
            minutes: For how long; 0 ends a maintenance that was begun here.
            note: The reason.

        Returns:
            The id of the rule, and the event time at which the maintenance ends, epoch milliseconds.
        """

    def rule(self, fields: Mapping[str, object], limits: Mapping[str, str | None], minutes: int | None) -> int:
        """Gives the detector a rule; one of the same name is replaced.

        Args:
            fields: The fields of the rule by name, without its limits and times.
            limits: Its limits as people write them, such as ``95%`` or ``20G``, by the name of the field.
            minutes: For how long; ``None``: until it is removed.

        Returns:
            The event time from which on it is in force, epoch milliseconds.
        """

    def withdraw(self, rule: str) -> int:
        """Ends a rule; returns the event time from which on it is no longer in force, epoch milliseconds."""

    def in_force(self) -> dict[str, list[dict[str, Any]]]:
        """What was said before: ``rules``, ``labels``, ``placements``, ``acknowledgements`` and ``told``.

        The first four are records by their JSON names, with times in epoch milliseconds. The last is what was told of
        incidents: ``at`` (epoch milliseconds), ``channel``, ``state``, ``title`` and ``incidents``, the oldest first.
        """
