"""Placements and acknowledgements on their way to the incidents job, and what the job keeps of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl

from engine.spec.record import Instant, Record
from pipelines.contracts.records import Acknowledgement, Placement

COLUMNS: dict[type[Record], str] = {Placement: "placement", Acknowledgement: "acknowledgement"}


class SiteMessage(Record):
    """A placement or an acknowledgement, as JSON text in a column."""

    identity: ClassVar[tuple[str, ...]] = ("window_end",)

    window_end: Instant
    """Event time. It has the name of the event-time column of the news, because both are inputs of one job."""
    placement: str | None = None
    acknowledgement: str | None = None


@dataclass
class Known:
    """What operators have said of a site: the last message on each machine, and on each incident.

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
                key = str(getattr(new, record.identity[0]))
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
        given = self.texts.get("acknowledgement", {})
        return {name: Acknowledgement.from_json(given[name]) for name in sorted(given)}

    def forget(self, before: int, standing: Collection[str]) -> None:
        """Forgets acknowledgements of incidents that do not stand.

        Args:
            before: Only those that were given before this event time, epoch milliseconds.
            standing: Ids of the incidents that are not over.
        """
        for name, given in self.acknowledgements().items():
            if given.time < before and name not in standing:
                del self.texts["acknowledgement"][name]


def _order(record: type[Record], text: str) -> tuple[int, str]:
    return int(getattr(record.from_json(text), "time")), text  # noqa: B009
