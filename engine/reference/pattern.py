"""The meaning of a `Pattern`, one record and one run at a time."""

from __future__ import annotations

from dataclasses import dataclass

from engine.operators.pattern import Event, Pattern
from engine.reference.ordered import OrderedReference
from engine.spec.expressions import holds
from engine.spec.operator import Key, Progress, Row


@dataclass
class PartialMatch:
    """A run of a pattern: the records that it has taken so far, in order, and the numbers of the first and the last."""

    taken: list[Row]
    first: int = 0
    last: int = 0


class PatternReference(OrderedReference):
    """The meaning of a `Pattern`."""

    def __init__(self, config: Pattern) -> None:
        super().__init__(config)
        self.config = config
        self.runs: dict[Key, list[PartialMatch]] = {}
        self.number = 0

    def apply(self, ready: list[Row], progress: Progress) -> list[Row]:
        matches: list[Row] = []
        for record in ready:
            self.number += 1
            matches += self.expire(self.key_of(record), record[self.time])
            matches += self.meet(record)
        for key in list(self.runs):
            matches += self.expire(key, progress.now)
        return matches

    def expire(self, key: Key, now: int) -> list[Row]:
        """Ends the runs whose time is up; runs that only waited for an absence match."""
        runs = self.runs.get(key, [])
        over = [run for run in runs if run.taken[0][self.time] + self.config.within_ms < now]
        self.runs[key] = [run for run in runs if run not in over]
        done = [run for run in over if len(run.taken) == len(self.config.taken)]
        if self.config.after == "past_last" and self.config.ends_in_absence:
            done = self.oldest(key, done)
        return [self.match(run, run.taken[0][self.time] + self.config.within_ms) for run in done]

    def oldest(self, key: Key, done: list[PartialMatch]) -> list[PartialMatch]:
        """The matches that are left where each ends the runs that began up to its last record."""
        kept: list[PartialMatch] = []
        for run in done:
            if not kept or run.first > kept[-1].last:
                kept.append(run)
        self.runs[key] = [run for run in self.runs[key] if not kept or run.first > kept[-1].last]
        return kept

    def meet(self, record: Row) -> list[Row]:
        """Applies a record to all runs of its key, the oldest run first."""
        key, matches = self.key_of(record), []
        left: list[PartialMatch] = []
        for run in self.runs.get(key, []):
            if any(self.holds(event, record, run) for event in self.config.absent(len(run.taken))):
                continue
            waits = self.config.taken[len(run.taken)] if len(run.taken) < len(self.config.taken) else None
            if waits and self.holds(waits, record, run):
                run.taken.append(record)
                run.last = self.number
            elif waits and waits.how == "next":
                continue
            if len(run.taken) < len(self.config.taken) or self.config.ends_in_absence:
                left.append(run)
                continue
            matches.append(self.match(run, record[self.time]))
            if self.config.after == "past_last":
                self.runs[key] = []
                return matches
        self.runs[key] = left
        if self.holds(self.config.taken[0], record, PartialMatch([])):
            run = PartialMatch([record], self.number, self.number)
            if len(self.config.events) == 1:
                matches.append(self.match(run, record[self.time]))
            else:
                self.runs[key].append(run)
        return matches

    def holds(self, event: Event, record: Row, run: PartialMatch) -> bool:
        """Whether a record fulfils the condition of an event in a run."""
        return holds(event.where, record | self.captured(run))

    def captured(self, run: PartialMatch) -> Row:
        names = (self.time, *self.config.columns)
        return {f"{e.name}_{c}": r[c] for e, r in zip(self.config.taken, run.taken, strict=False) for c in names}

    def match(self, run: PartialMatch, time: int) -> Row:
        key = dict(zip(self.key, self.key_of(run.taken[0]), strict=True))
        return key | {self.time: time} | self.captured(run)
