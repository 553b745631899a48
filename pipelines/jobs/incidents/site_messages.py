"""The messages that the incidents job reads beside novelties, and what it keeps of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl

from engine.spec.record import Instant, Record
from pipelines.contracts.records import Acknowledgement, Change, Placement, Rule, Silence
from pipelines.contracts.records.change import OF_DRAINS, OF_SINGLE_MACHINES
from pipelines.jobs.incidents.maintenance import muting

COLUMNS: dict[type[Record], str] = {
    Placement: "placement",
    Acknowledgement: "acknowledgement",
    Silence: "silence",
    Change: "change",
    Rule: "rule",
}

MOST_OF_CHANGES = 1 << 17
"""The most characters of changes that are kept of each hour of event time, and of what ended machines as many; and of
each day of cordons and what takes them back, and of changes of days, which are few and count for a week. The first ones
are kept, so that it makes no difference when they are read."""
_HOUR, _DAY = 3_600_000, 86_400_000
_SEPARATOR = "\0"


class SiteMessage(Record):
    """A placement, an acknowledgement, a silence, a change or a rule, as JSON text in a column."""

    identity: ClassVar[tuple[str, ...]] = ("window_end",)

    window_end: Instant
    """Event time. It has the name of the event-time column of the news, because both are inputs of one job."""
    placement: str | None = None
    inferredplacement: str | None = None
    acknowledgement: str | None = None
    silence: str | None = None
    change: str | None = None
    rule: str | None = None


@dataclass
class LastMessages:
    """What is said of a site: the last message on each machine, incident and silence; rules that mute the whole site.

    Of two messages on the same, the one with the later event time counts; so their order does not matter.

    Args:
        texts: The messages by kind (a column of `SiteMessage`) and by machine or incident, as JSON text.
    """

    texts: dict[str, dict[str, str]] = field(default_factory=dict)

    def take(self, batch: pl.DataFrame) -> bool:
        """Adds messages; True if one of them says something new."""
        before = {name: dict(own) for name, own in self.texts.items()}
        for record, column in COLUMNS.items():
            for text in batch[column].drop_nulls().to_list() if column in batch.columns else ():
                new = record.from_json(text)
                if not isinstance(new, Rule) or muting(new) or self._known(new):
                    self._keep(record, _SEPARATOR.join(str(getattr(new, name)) for name in record.identity), text)
        return self.texts != before

    @classmethod
    def of_all(cls, parts: Iterable[dict[str, dict[str, str]]]) -> LastMessages:
        """What several shards keep: of what is old, each keeps what its own incidents need."""
        whole = cls()
        for texts in parts:
            for record, column in COLUMNS.items():
                for key, text in texts.get(column, {}).items():
                    whole._keep(record, key, text)
        return whole

    def _keep(self, record: type[Record], key: str, text: str) -> None:
        own = self.texts.setdefault(COLUMNS[record], {})
        if key not in own or _order(record, own[key]) < _order(record, text):
            own[key] = text

    def placements(self) -> dict[str, Placement]:
        """The last placement of each machine, in the order of their names."""
        placed = self.texts.get("placement", {})
        return {name: Placement.from_json(placed[name]) for name in sorted(placed)}

    def acknowledgements(self) -> dict[str, Acknowledgement]:
        """The last acknowledgement of each incident."""
        texts = self.texts.get("acknowledgement", {})
        return {name: Acknowledgement.from_json(texts[name]) for name in sorted(texts)}

    def silences(self) -> list[Silence]:
        """The silences, in the order in which they began."""
        silences = [Silence.from_json(text) for text in self.texts.get("silence", {}).values()]
        return sorted(silences, key=lambda each: (each.since, each.input))

    def changes(self) -> list[Change]:
        """The changes, in the order in which they began."""
        changes = [Change.from_json(text) for text in self.texts.get("change", {}).values()]
        return sorted(changes, key=lambda each: (each.time, each.id))

    def rules(self) -> list[Rule]:
        """All versions of the rules that mute, or once muted, the whole site."""
        return [Rule.from_json(text) for text in self.texts.get("rule", {}).values()]

    def _known(self, rule: Rule) -> bool:
        """Whether another version of a rule is kept, which this one may replace."""
        return any(name.startswith(f"{rule.id}{_SEPARATOR}") for name in self.texts.get("rule", {}))

    def forget(self, before: int, standing: Collection[str]) -> None:
        """Forgets acknowledgements of incidents that do not stand.

        Args:
            before: Only those that were given before this event time, epoch milliseconds.
            standing: Ids of the incidents that are not over.
        """
        for name, acknowledgement in self.acknowledgements().items():
            if acknowledgement.time < before and name not in standing:
                del self.texts["acknowledgement"][name]

    def forget_placements(self, before: int) -> None:
        """Forgets that machines have no place any more, if that was said before an event time, epoch milliseconds."""
        for name, placement in self.placements().items():
            if placement.time < before and placement.is_empty:
                del self.texts["placement"][name]

    def forget_silences(self, before: int) -> None:
        """Forgets silences that were over before an event time, epoch milliseconds."""
        for silence in self.silences():
            if silence.until is not None and silence.until < before:
                self.texts["silence"].pop(_SEPARATOR.join((silence.input, str(silence.since))), None)

    def bound_changes(self) -> None:
        """Gives up changes that are more than `MOST_OF_CHANGES`; one that is given up takes no room of a later one."""
        texts, used = self.texts.get("change", {}), Counter[tuple[str, int]]()
        for change in self.changes():
            own, size = _budget(change), len(texts[change.id])
            if used[own] + size > MOST_OF_CHANGES:
                del texts[change.id]
            else:
                used[own] += size

    def forget_changes(self, before: int, named: Collection[str]) -> None:
        """Forgets changes that were over before an event time.

        Args:
            before: Event time, epoch milliseconds.
            named: Ids of those that incidents name, which stay, however old they are.
        """
        for change in self.changes():
            if change.over < before and change.id not in named:
                del self.texts["change"][change.id]


def _budget(change: Change) -> tuple[str, int]:
    """What shares the bound `MOST_OF_CHANGES` with a change."""
    if change.kind in OF_DRAINS or change.over > change.time + _DAY:
        return "drains" if change.kind in OF_DRAINS else "long", change.time // _DAY
    return "ends" if change.kind in OF_SINGLE_MACHINES else "", change.time // _HOUR


def _order(record: type[Record], text: str) -> tuple[int, str]:
    return int(getattr(record.from_json(text), "time")), text  # noqa: B009
