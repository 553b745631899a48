"""The meaning of a `Process`: the user's logic is called with one record, or one timer, at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from zlib import crc32

from engine.operators.process import Process
from engine.operators.turn import NO_TIMER
from engine.operators.turn_of_one import one_turn
from engine.reference.ordered import OrderedReference
from engine.spec.duration import END_OF_TIME, NEVER
from engine.spec.most_keys import MostKeys
from engine.spec.operator import Key, Progress, Row


@dataclass
class Kept:
    """The state of one key."""

    state: Row
    timer: int = NO_TIMER
    last: int = NEVER
    results: list[Row] = field(default_factory=list)


class ProcessReference(OrderedReference):
    """The meaning of a `Process`: the logic is called with one record, or one timer, at a time.

    * A timer is due before the first record at or after its instant, or when the watermark reaches it.
    * A key without a record for `idle_after` is forgotten; timers up to that instant fire first, later ones never.
    * At the end of all input the timer of each key fires once; timers that are set then do not fire.
    * Where the number of keys is bounded, records of others are refused, in the order of event time, those of one
      instant by the names of their keys. A key counts in the period of its latest record and the seven after that.
    """

    def __init__(self, config: Process) -> None:
        super().__init__(config)
        self.logic, self.idle = config.logic, config.idle_ms
        self.most, self.slots = config.most, config.slots
        self.kept: dict[Key, Kept] = {}
        self.met: dict[int, dict[Key, int]] = {}
        self.refused: list[Row] = []

    def accepts(self, record: Row, most: MostKeys) -> bool:
        """Whether the key of a record is known, or one more is accepted."""
        key, every = tuple(record[name] for name in most.key), max(1, most.forget // 7)
        now = int(record[self.time]) // every if most.forget else 0
        slot = crc32(str(record[self.key[0]]).encode()) % self.slots  # of names that nobody generated
        met = self.met[slot] = {k: at for k, at in self.met.get(slot, {}).items() if at >= now - 7}
        alike = sum(other[0] == key[0] for other in met)
        if key not in met and (len(met) >= most.partition or alike >= most.alike):
            return False
        met[key] = now
        return True

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        results: list[Row] = []
        if most := self.most:
            ordered = sorted(ready, key=lambda row: (row[self.time], *(row[name] for name in most.key)))
            refused = [id(row) for row in ordered if not self.accepts(row, most)]
            self.refused += [row for row in ready if id(row) in refused]
            ready = [row for row in ready if id(row) not in refused]
        for record in ready:
            key, now = self.key_of(record), int(record[self.time])
            kept = self.kept.get(key) or self.fresh()
            results += self.fire(key, kept, now)
            if self.expiry(kept) <= now:
                kept = self.fresh()
            self.kept[key] = kept
            results += self.call(key, kept, now, record)
            kept.last = now
        for key, kept in list(self.kept.items()):
            results += self.fire(key, kept, progress.now)
            if self.expiry(kept) <= progress.now:
                del self.kept[key]
        return results

    def fresh(self) -> Kept:
        return Kept(dict(self.logic.columns()))

    def expiry(self, kept: Kept) -> int:
        return kept.last + self.idle if self.idle and kept.last != NEVER else END_OF_TIME + 1

    def fire(self, key: Key, kept: Kept, until: int) -> list[Row]:
        results: list[Row] = []
        while kept.timer != NO_TIMER and kept.timer <= min(until, self.expiry(kept)):
            due, kept.timer = kept.timer, NO_TIMER
            results += self.call(key, kept, due, None)
            if until == END_OF_TIME:
                break
        return results

    def call(self, key: Key, kept: Kept, now: int, record: Row | None) -> list[Row]:
        """Calls the logic with one record, or for a timer that is due."""
        called = one_turn(self.logic, now, kept.state, kept.timer, record)
        kept.state, kept.timer = called.state, max(called.timer, now + 1)
        named = dict(zip(self.key, key, strict=True))
        return called.forwarded + [named | {self.time: time} | columns for time, columns in called.emitted]
