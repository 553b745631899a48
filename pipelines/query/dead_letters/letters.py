"""Reads the dead letters of a version's jobs and of users' own jobs from their topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import Consumer
from pydantic import ValidationError

from engine.address import kafka_options
from engine.formats.dead_letters import DeadLetter
from engine.kafka.content import content
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.links import LINKS

_OF_OWN_JOB = f".{topics.DEADLETTER}"


@dataclass(frozen=True)
class Letter:
    """A dead letter.

    Attributes:
        letter: What is wrong with which message.
        home: Full name of the topic that holds the letter.
        mark: The last mark that says that it was sent again, if any.
    """

    letter: DeadLetter
    home: str
    mark: DeadLetter | None = None

    @property
    def place(self) -> str:
        """The place of the message: ``TOPIC/PARTITION@OFFSET``."""
        return place(self.letter.topic, self.letter.partition, self.letter.offset)

    @property
    def key(self) -> tuple[object, ...]:
        """Letters with the same key are about the same records; a mark has the key of its letter."""
        return self.home, *(getattr(self.letter, name) for name in DeadLetter.identity)


@dataclass(frozen=True)
class LetterFilter:
    """Selects dead letters; what is empty selects all.

    Attributes:
        jobs: Names of jobs.
        codes: Error codes.
        places: Places of messages, ``TOPIC/PARTITION@OFFSET``.
        start: The message arrived at Kafka at this time or later, epoch milliseconds.
        end: The message arrived before this time, epoch milliseconds.
    """

    jobs: Sequence[str] = ()
    codes: Sequence[str] = ()
    places: Sequence[str] = ()
    start: int | None = None
    end: int | None = None

    def of(self, letters: Iterable[Letter]) -> list[Letter]:
        """The selected ones among some letters."""
        return [each for each in letters if self._has(each)]

    def _has(self, candidate: Letter) -> bool:
        letter = candidate.letter
        in_time = (self.start is None or letter.time >= self.start) and (self.end is None or letter.time < self.end)
        named = (not self.jobs or letter.job in self.jobs) and (not self.codes or letter.code in self.codes)
        return in_time and named and (not self.places or candidate.place in self.places)


def place(topic: str, partition: int, offset: int) -> str:
    """The place of a message, as users write it.

    >>> place("telemetry.json", 0, 1042)
    'telemetry.json/0@1042'
    """
    return f"{topic}/{partition}@{offset}"


def homes(settings: Settings) -> list[str]:
    """The topics that hold dead letters: that of the version, and those of users' own jobs.

    Raises:
        KafkaException: The broker does not answer.
    """
    reader = Consumer(
        {**kafka_options(settings.kafka.bootstrap or ""), "group.id": "newnormal.content", "log_level": 0}
    )
    try:
        there = set(reader.list_topics(timeout=10).topics)
    finally:
        reader.close()
    own = settings.writes(topics.DEADLETTER)
    return [name for name in sorted(there) if name == own or name.endswith(_OF_OWN_JOB)]


def letters(settings: Settings) -> list[Letter]:
    """All letters of a version and of users' own jobs, in the order in which their messages arrived.

    Raises:
        NewnormalError: ``KAFKA_READ_FAILED``.
    """
    all_letters: list[Letter] = []
    own = settings.writes(topics.DEADLETTER)
    for name in homes(settings):
        mine = of_topic(settings, name)
        # a topic such as nab.deadletter may be that of a job "nab" or of a namespace "nab."
        all_letters += mine if name == own else [letter for letter in mine if letter.letter.job not in LINKS]
    return sorted(all_letters, key=lambda letter: (letter.letter.time, letter.place, letter.letter.code))


def of_topic(settings: Settings, name: str) -> list[Letter]:
    """The letters of one topic, each with the last mark that says that it was sent again."""
    by_key: dict[tuple[object, ...], Letter] = {}
    marks: dict[tuple[object, ...], DeadLetter] = {}
    for message in content(settings.kafka.bootstrap or "", name):
        with suppress(ValidationError):  # another program wrote to the topic
            letter = Letter(DeadLetter.from_json(message.value() or b""), name)
            before = marks.get(letter.key)
            if letter.letter.retried is None:
                by_key[letter.key] = letter
            elif before is None or letter.letter.retried >= (before.retried or 0):
                marks[letter.key] = letter.letter
    return [replace(letter, mark=marks.get(key)) for key, letter in by_key.items()]


def summary(letters: Iterable[Letter]) -> list[dict[str, Any]]:
    """A row for each job and code: number of letters, of those sent again, first and last time, and an example.

    The example is the newest letter that was not sent again, else the newest one. Jobs with most letters come first.
    """
    groups: dict[tuple[str, str], list[Letter]] = {}
    for letter in letters:
        groups.setdefault((letter.letter.job, letter.letter.code), []).append(letter)
    table = []
    for (job, code), group in groups.items():
        open_ = [letter for letter in group if letter.mark is None]
        example, times = (open_ or group)[-1], [letter.letter.time for letter in group]
        table.append(
            {
                "job": job,
                "code": code,
                "letters": len(group),
                "sent again": len(group) - len(open_),
                "first": min(times),
                "last": max(times),
                "example": example.place,
                "reason": example.letter.reason,
            }
        )
    return sorted(table, key=lambda row: (-row["letters"], row["job"], row["code"]))
