"""What the state view keeps of the topics of the detector: states, windows, verdicts and machines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from engine.formats import columnar
from engine.spec.duration import NEVER
from pipelines.contracts import topics
from pipelines.contracts.records import Features
from pipelines.contracts.records.novelty import JOINED
from pipelines.contracts.settings import Settings
from pipelines.query.view.content import Content, Gathering
from pipelines.query.view.database import Database
from pipelines.query.view.keys import BELIEF, MACHINE, VERDICT, WINDOW, names, parts, slot
from pipelines.query.view.machines import Machines
from pipelines.query.view.progress import Progress
from pipelines.query.view.states import StateMessage, take_states
from pipelines.query.view.windows import Ring, newest

TOPICS = (topics.STATE, topics.FEATURES, topics.NOVELTIES, topics.NEWS)
"""What the view reads: beliefs, the statistics of each window, verdicts, and until when the detector has judged."""


class DetectorTopics(Content):
    """The topics of the detector of one version.

    Args:
        settings: The settings of the version.
    """

    def __init__(self, settings: Settings) -> None:
        self.names, self.ring = {settings.reads(name): name for name in TOPICS}, Ring(settings)
        self.topics = tuple(self.names)
        self.layout = f"3 {self.ring.every} {self.ring.places}"

    def gathering(self) -> Gathering:
        return _Gathering(self)


class _Gathering(Gathering):
    def __init__(self, content: DetectorTopics) -> None:
        self.names, self.ring, self.machines = content.names, content.ring, Machines()
        self.puts: dict[bytes, bytes] = {}
        self.verdicts: list[tuple[bytes, bytes]] = []
        self.last: dict[bytes, StateMessage] = {}

    def take(self, message: Any, place: Progress) -> None:
        topic, value = self.names[message.topic()], message.value()
        if topic == topics.STATE:
            key = orjson.loads(message.key() or b"")
            said = StateMessage(message.partition(), value)
            if said.state:
                self.puts.update([self.ring.belief(said.state)])
                self.machines.take_kind(key["entity"], said.state["kind"])
            self.last[names(key["entity"], key["metric"])] = said
        elif topic == topics.FEATURES:
            table, watermark = columnar.decode(value or b"", Features.arrow_schema())
            if table.num_rows:
                self.puts.update(self.ring.statistics(table))
                self.machines.take_windows(table)
            if watermark is not None:
                place.watermark = max(place.watermark, watermark)
        elif topic == topics.NEWS:
            place.watermark = max(place.watermark, columnar.watermark(value or b"") or NEVER)
        elif value:
            self.verdicts.append(self.ring.verdict(value))

    def entries(
        self, database: Database, places: Mapping[tuple[str, int], Progress]
    ) -> tuple[dict[bytes, bytes], Collection[bytes]]:
        gone: set[bytes] = set()
        puts = self.puts | newest(self.verdicts, database)
        counts = {at: place.counts for (topic, at), place in places.items() if self.names[topic] == topics.STATE}
        take_states(database, self.last, counts, puts, gone)
        puts.update(self.machines.entries(database))
        self._forget([series for series, said in self.last.items() if not said.state], database, puts, gone)
        return puts, gone

    @staticmethod
    def _forget(series: Sequence[bytes], database: Database, puts: dict[bytes, bytes], gone: set[bytes]) -> None:
        """Deletes all that is kept of series that the detector has forgotten, and of machines without a series."""
        if not series:
            return
        of_windows = [prefix + one for prefix in (WINDOW, VERDICT, BELIEF) for one in series]
        gone.update(key for prefix in of_windows for key, _ in database.scan(prefix, once=True))
        machines = {MACHINE + names(entity) for entity, metric in map(parts, series) if metric == JOINED}
        gone.update(machines)
        forgotten, size = {*of_windows}, len(slot(0))
        for key in [key for key in puts if key in machines or key[:-size] in forgotten]:
            del puts[key]
