"""The messages that the incidents job reads beside novelties, and what it keeps of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl

from engine.spec.record import Instant, Record
from pipelines.contracts.records import Acknowledgement, Change, Placement, Rule, Silence
from pipelines.jobs.incidents.maintenance import muting

COLUMNS: dict[type[Record], str] = {
    Placement: "placement",
    Acknowledgement: "acknowledgement",
    Silence: "silence",
    Change: "change",
    Rule: "rule",
}

MOST_OF_CHANGES = 1 << 20
"""The most characters of changes that are kept; each micro-batch with a change writes them anew."""
_SEPARATOR = "\0"


class SiteMessage(Record):
    """A placement, an acknowledgement, a silence, a change or a rule, as JSON text in a column."""

    identity: ClassVar[tuple[str, ...]] = ("window_end",)

    window_end: Instant
    """Event time. It has the name of the event-time column of the news, because both are inputs of one job."""
    placement: str | None = None
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
            own = self.texts.setdefault(column, {})
            for text in batch[column].drop_nulls().to_list() if column in batch.columns else ():
                new = record.from_json(text)
                if isinstance(new, Rule) and not (muting(new) or self._known(new)):
                    continue
                key = _SEPARATOR.join(str(getattr(new, name)) for name in record.identity)
                if key not in own or _order(record, own[key]) < _order(record, text):
                    own[key] = text
        self.texts = {name: own for name, own in self.texts.items() if own}
        return self.texts != before

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

    def forget_silences(self, before: int) -> None:
        """Forgets silences that were over before an event time, epoch milliseconds."""
        for silence in self.silences():
            if silence.until is not None and silence.until < before:
                self.texts["silence"].pop(_SEPARATOR.join((silence.input, str(silence.since))), None)

    def forget_changes(self, before: int, named: Collection[str]) -> None:
        """Forgets changes that were over before an event time, and of the others the oldest that are too much to keep.

        Args:
            before: Event time, epoch milliseconds.
            named: Ids of those that incidents name, which stay, however old they are.
        """
        texts, left = self.texts.get("change", {}), MOST_OF_CHANGES
        for change in reversed(self.changes()):
            left -= len(texts[change.id])
            if left < 0 or (change.over < before and change.id not in named):
                del texts[change.id]


def _order(record: type[Record], text: str) -> tuple[int, str]:
    return int(getattr(record.from_json(text), "time")), text  # noqa: B009
