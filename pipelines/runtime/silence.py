"""Notices that nothing arrives any more: heartbeats stand one behind the other in the log, without a record between.

All is decided by the log: the offsets of the heartbeats, and when Kafka took in records and heartbeats. While nobody
sends heartbeats, as the pipeline is stopped, nothing is noticed; that is not a silence of the senders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from engine.kafka.heartbeat_sender import Beat
from pipelines.contracts.records.site_messages import ALL_INPUTS, Silence

Place = tuple[str, int]
Spans = Mapping[Place, tuple[int, int]]
"""Parts of the log, by topic and partition: the offset of the first message, and the one after the last."""

Read = Callable[[Spans], list[tuple[str, int]]]
"""Reads parts of the log: the topic and the time of arrival (epoch milliseconds) of each record, without heartbeats."""

_OTHERS = 4
"""Up to so many messages between two heartbeats of ours may be those of other processes that send heartbeats, too."""

_BROKEN_MS = 60_000
"""Heartbeats that are further apart have not gone on: nobody looked in between."""

_AGAIN_MS = 60_000
"""So often it is written that a silence lasts."""

_TAIL = 200
"""How many of the last messages of a partition are read when its first heartbeat is there."""

_USUAL, _DAY_MS = 3, 86_400_000
"""An input that has been silent so often in a day pauses by its nature, as the log of a quiet site; it is not told."""


@dataclass
class _Partition:
    """A partition: ``read`` up to which offset, the ``end`` that is known, how many ``own`` heartbeats in between."""

    read: int
    end: int
    own: int = 0


@dataclass
class _Input:
    """A topic of agents, or all of them together.

    Attributes:
        exact: When the last record arrived that was read, epoch milliseconds; 0: none was.
        about: The heartbeat before which more records arrived that were not read; 0: none.
        first: When heartbeats began that have gone on until now.
        beat: The last heartbeat.
        lasting: The silence that lasts.
        pauses: When it fell silent alone.
        partitions: The partitions, by their numbers.
    """

    exact: int = 0
    about: int = 0
    first: int = 0
    beat: int = 0
    lasting: Silence | None = None
    pauses: list[int] = field(default_factory=list)
    partitions: dict[int, _Partition] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """When the last record arrived that is known; 0: there was never one."""
        return max(self.exact, self.about)

    def beaten(self, at: int) -> None:
        """Takes in the time of a heartbeat."""
        if at - self.beat > _BROKEN_MS:
            self.first = at
        self.beat = max(self.beat, at)

    def quiet(self, since: int = 0) -> int:
        """For how many milliseconds heartbeats have gone on without a record, and after a point in time."""
        return self.beat - max(self.last, self.first, since)


class Silences:
    """What is to be written of the silence of inputs.

    Args:
        after: How long nothing arrives before it is a silence, milliseconds.
        lasting: The silences that were not over when the process before ended.
        read: Reads parts of the log.
    """

    def __init__(self, after: int, lasting: Iterable[Silence], read: Read) -> None:
        self._after, self._read, self._ended = after, read, 0
        self._before = {each.input: each for each in lasting}
        self._inputs: dict[str, _Input] = {}
        self._all = _Input(lasting=self._before.get(ALL_INPUTS))

    def take(self, beats: Iterable[Beat]) -> list[Silence]:
        """Takes in heartbeats, in the order of each partition; returns what is to be written then."""
        spans: dict[Place, tuple[int, int]] = {}
        for beat in beats:
            one = self._inputs.setdefault(beat.topic, _Input(lasting=self._before.get(beat.topic)))
            one.beaten(beat.time)
            self._all.beaten(beat.time)
            place = one.partitions.get(beat.partition)
            if place is None:
                one.partitions[beat.partition] = _Partition(beat.offset + 1, beat.offset + 1)
                spans[beat.topic, beat.partition] = (max(0, beat.offset - _TAIL), beat.offset)
                continue
            if beat.offset - place.end > _OTHERS and not self._doubtful(one):
                one.about = beat.time
            place.end, place.own = beat.offset + 1, place.own + 1
        records = self._look(spans)
        if any(self._doubtful(one) for one in self._inputs.values()):
            records += self._look(self._unread())
        return self._changes(sorted(records, key=lambda record: record[1]))

    def _doubtful(self, one: _Input) -> bool:
        """Whether a silence lasts, or no heartbeat has told of records for so long that it may be one."""
        return one.lasting is not None or one.quiet() >= self._after

    def _unread(self) -> dict[Place, tuple[int, int]]:
        """The messages between heartbeats that were not read: the first after a silence, or else the last."""
        spans = {}
        for name, one in self._inputs.items():
            for number, place in one.partitions.items():
                if place.end - place.read > place.own:
                    lasts = one.lasting is not None or self._all.lasting is not None
                    begin = place.read if lasts else max(place.read, place.end - 2 * place.own - _TAIL)
                    spans[name, number] = (begin, min(place.end, begin + 2 * place.own + _TAIL))
                place.read, place.own = place.end, 0
        return spans

    def _look(self, spans: Spans) -> list[tuple[str, int]]:
        """Reads parts of the log, and notes when records arrived."""
        records = self._read(spans) if spans else []
        for topic, at in records:
            one = self._inputs[topic]
            one.exact = max(one.exact, at)
        for topic in {topic for topic, _ in records}:
            self._inputs[topic].about = 0
        return records

    def _changes(self, records: list[tuple[str, int]]) -> list[Silence]:
        """What is to be written, after some records were read; they are in the order of their arrival."""
        silences = []
        for name, one in sorted(self._inputs.items()):
            silences += self._again(one, [at for topic, at in records if topic == name], one.last)
        self._all.exact = max((one.last for one in self._inputs.values()), default=0)
        ended = self._again(self._all, [at for _, at in records], self._all.exact)
        self._ended = max([self._ended, *(silence.time for silence in ended if silence.until is not None)])
        silences += ended
        for name, one in sorted(self._inputs.items()):
            if self._alone(one):
                silences += self._begun(name, one)
        if self._all.last and self._all.quiet() >= self._after:
            silences += self._begun(ALL_INPUTS, self._all)
        return silences

    def _again(self, one: _Input, arrived: list[int], last: int) -> list[Silence]:
        """That a silence has ended, or, now and then, that it lasts."""
        lasting = one.lasting
        if lasting is None:
            return []
        again = min((at for at in [*arrived, last] if at > lasting.since), default=None)
        if again is not None:
            one.lasting = None
            return [lasting.model_copy(update={"until": again, "time": again})]
        if one.beat - lasting.time < _AGAIN_MS:
            return []
        one.lasting = lasting.model_copy(update={"time": one.beat})
        return [one.lasting]

    def _begun(self, name: str, one: _Input) -> list[Silence]:
        if one.lasting is not None:
            return []
        one.lasting = Silence(input=name, since=one.last, noticed=one.beat, time=one.beat)
        return [one.lasting]

    def _alone(self, one: _Input) -> bool:
        """Whether an input has stopped alone, and not by its nature.

        It is not alone while all others have sent nothing lately either: they may be about to be silent, too.
        """
        if not one.last or one.lasting is not None or one.quiet(self._ended) < self._after:
            return False
        other = max((each.last for each in self._inputs.values() if each is not one), default=0)
        if one.beat - other > self._after / 2:
            return False
        if one.last not in one.pauses:
            one.pauses = [*(at for at in one.pauses if at > one.beat - _DAY_MS), one.last]
        return len(one.pauses) <= _USUAL
