"""What an operator says to a running pipeline by a click: labels, acknowledgements, maintenance, rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from engine.clock import now_ms
from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Label, Rule
from pipelines.contracts.settings import Settings
from pipelines.jobs.operator_messages import OperatorMessage
from pipelines.query import incidents
from pipelines.query.control_topics import (
    acknowledgements,
    all_placements,
    checked,
    labels,
    rules,
    rules_in_force,
    withdrawn,
    write,
)
from pipelines.query.given_rule import GivenRule, given
from pipelines.query.recent_windows import recent_windows
from pipelines.query.told import ToldFiles

_MINUTE = 60_000
_LONGEST_NAME = 200


class Operator:
    """Writes what an operator says to the topics that the detector and the incidents job read.

    Args:
        settings: Gives the settings, with the address of Kafka filled in; asked at each message.
        clock: The present, epoch milliseconds.
    """

    def __init__(self, settings: Callable[[], Settings], clock: Callable[[], int]) -> None:
        self._settings, self._clock = settings, clock

    @classmethod
    def of(cls, settings: Settings) -> Operator:
        """The operator of a pipeline with these settings, who speaks now."""
        return cls(lambda: settings, now_ms)

    def label(self, entity: str, metric: str, start: int, verdict: str, note: str) -> int:
        """Writes a label that takes effect now; returns that event time, epoch milliseconds.

        Raises:
            NewnormalError: As `checked` and `write`.
        """
        return self.labels([(entity, metric, start)], verdict, note)

    def labels(self, series: Sequence[tuple[str, str, int]], verdict: str, note: str) -> int:
        """Writes the same label on several series (machine, metric, onset), at least one, all of them or none.

        Raises:
            NewnormalError: As `checked` and `write`.
        """
        settings, now = self._settings(), self._clock()
        said = {"time": now, "verdict": verdict, "note": note}
        fields = [{"entity": entity, "metric": metric, "start": start, **said} for entity, metric, start in series]
        found = [checked(Label, each, settings, now) for each in fields]
        write(settings, *found)
        return found[0].effective_from

    def acknowledge(self, incident: str, active: bool, by: str, note: str) -> None:
        """Writes that an operator looks after an incident, or no longer does.

        Raises:
            NewnormalError: As `pipelines.query.incidents.incidents`, `named` and `acknowledge`.
        """
        settings = self._settings()
        found = incidents.named(incidents.incidents(settings), incident)
        incidents.acknowledge(settings, found, self._clock(), by=by, note=note, active=active)

    def maintain(self, entity: str, minutes: int, note: str) -> tuple[str, int]:
        """Begins or ends a maintenance: a rule by which nothing of a machine is reported or learned, but all is stored.

        Raises:
            NewnormalError: ``RULE_UNKNOWN`` if there is no maintenance to end; as `checked` and `write`.
        """
        settings, now, name = self._settings(), self._clock(), maintenance(entity)
        fields: dict[str, object] = {"id": name, "time": now, "entity": entity.replace("*", "?"), "note": note}
        end = now + minutes * _MINUTE
        if minutes:
            fields |= {"start": now, "end": end, "skip_result": True, "skip_learning": True, "store": True}
        else:
            known = next((rule for rule in rules(settings) if rule.id == name), None)
            if known is None or (known.end is not None and known.end <= now):
                what = f"no maintenance of {entity} that was begun here is in force"
                raise NewnormalError("RULE_UNKNOWN", what, "maintenance", "`newnormal rule list`", "nothing changed")
            end = max(now, known.time + 1)
            fields |= {"time": end, "active": False}
        write(settings, checked(Rule, fields, settings, now))
        return name, end

    def rule(self, fields: Mapping[str, object], limits: Mapping[str, str | None], minutes: int | None) -> int:
        """Writes a rule that is in force from now on; returns that event time, epoch milliseconds.

        Raises:
            NewnormalError: As `given`, `GivenRule.refuse_percentages`, `checked` and `write`.
        """
        settings, now = self._settings(), self._clock()
        rule, told = told_rule(fields, limits, minutes, settings, now)
        if told.percentages:
            told.refuse_percentages(recent_windows(settings, rule.entity, rule.metric))
        write(settings, rule)
        return rule.effective_from

    def withdraw(self, rule: str) -> int:
        """Writes that a rule is no longer in force; returns from when on, epoch milliseconds.

        Raises:
            NewnormalError: As `withdrawn` and `write`.
        """
        settings, now = self._settings(), self._clock()
        record = withdrawn(settings, rule, now, now)
        write(settings, record)
        return record.time

    def in_force(self) -> dict[str, list[dict[str, Any]]]:
        """The rules, labels and placements that apply, what was said of incidents, and what was told of them to whom.

        Each is a record by its JSON names, with times in epoch milliseconds; ``told`` has the fields of
        `pipelines.query.told.SentMessage`.

        Raises:
            NewnormalError: As `rules`.
        """
        settings = self._settings()
        records: dict[str, Sequence[OperatorMessage]] = {
            "rules": rules_in_force(settings, self._clock()), "labels": labels(settings),
            "placements": list(all_placements(settings).values()),
            "acknowledgements": acknowledgements(settings),
        }  # fmt: skip
        written = {
            name: [record.model_dump(by_alias=True, exclude_none=True) for record in of_kind]
            for name, of_kind in records.items()
        }
        return written | {"told": [asdict(message) for message in ToldFiles(settings.common_folder("notify")).read()]}


def told_rule(
    fields: Mapping[str, object],
    limits: Mapping[str, str | None],
    minutes: int | None,
    settings: Settings,
    time: int,
) -> tuple[Rule, GivenRule]:
    """The rule that an operator has written in the console, and what was said.

    Args:
        fields: Its fields by name, without limits and times.
        limits: Its limits as people write them, by the name of the field.
        minutes: For how long; ``None``: until it is removed.
        settings: The settings.
        time: From when on, epoch milliseconds.

    Raises:
        NewnormalError: As `given` and `checked`.
    """
    told = given(fields, limits)
    end = None if minutes is None else time + minutes * _MINUTE
    return checked(Rule, {**told.fields, "time": time, "end": end}, settings, time), told


def maintenance(entity: str) -> str:
    """The id of the rule for the maintenance of a machine.

    >>> maintenance("db-1")
    'maintenance of db-1'
    """
    short = entity if len(entity) <= _LONGEST_NAME else sha256(entity.encode()).hexdigest()
    return f"maintenance of {short}"
