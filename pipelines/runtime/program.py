"""A program is a set of jobs that a driver runs: the production chain, or the jobs of a user's file."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from engine.kafka.admin import change_configs, ensure_topics
from engine.kafka.heartbeat_sender import HEARTBEAT_SECONDS, RARE_SECONDS
from engine.kafka.offsets import Offsets
from engine.spec.job import Job
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.chain import JOBS, MODULES
from pipelines.jobs.links import LINKS, TOPICS
from pipelines.runtime import fingerprint

log = structlog.get_logger()


@dataclass(frozen=True)
class Rhythm:
    """When some topics get heartbeats; see `engine.kafka.heartbeat_sender.HeartbeatSender`.

    Attributes:
        topics: Full names of the topics.
        grid_ms: Its argument of that name.
        alone: True if only messages in these topics make their heartbeats frequent; otherwise messages in any topic do.
    """

    topics: Sequence[str]
    grid_ms: float = 0
    alone: bool = False

    def heard_in(self, ends: Offsets) -> Offsets:
        """Of where partitions end those whose messages make heartbeats frequent."""
        return {place: end for place, end in ends.items() if place[0] in self.topics} if self.alone else ends


class Program(ABC):
    """A set of jobs by name, with the preparations and checks that they need before they start.

    Attributes:
        names: Names of the jobs, in the order in which data flow through them.
        modules: Modules that Spark's Python workers import before they run the jobs.
        files: Python files with jobs, which the machines of a cluster do not have.
        by_event_time: True if no job follows the clock, so that heartbeats may be rare where nothing else comes.
    """

    names: tuple[str, ...]
    modules: tuple[str, ...]
    files: tuple[Path, ...] = ()
    by_event_time: bool = False

    @abstractmethod
    def prepare(self, settings: Settings) -> None:
        """Creates the topics that do not exist yet."""

    @abstractmethod
    def job(self, name: str, settings: Settings) -> Job | None:
        """The definition of a job; ``None`` for one that does not run on the engine's operator."""

    def runs(self, name: str, settings: Settings) -> bool:
        """Whether a job runs with these settings."""
        return True

    def starts_later(self, name: str) -> bool:
        """Whether a job starts only when those of which this is not true work."""
        return False

    def pause_ms(self, name: str, trigger_ms: int) -> int:
        """Shortest time between the starts of two micro-batches of a job, milliseconds, from that of the setting."""
        return trigger_ms

    @abstractmethod
    def reads(self, name: str, settings: Settings) -> Sequence[str]:
        """The full names of the topics that a job reads."""

    @abstractmethod
    def writes(self, name: str, settings: Settings) -> Sequence[str]:
        """The full names of the topics that a job writes."""

    @abstractmethod
    def beating(self, names: Sequence[str], settings: Settings) -> list[str]:
        """The full names of the topics that need heartbeats while some of the jobs run."""

    def rhythms(self, names: Sequence[str], settings: Settings) -> list[Rhythm]:
        """The same topics in groups, each of which has a rhythm of its own."""
        return [Rhythm(topics) for topics in [self.beating(names, settings)] if topics]

    def waits_for_idle(self, name: str, settings: Settings) -> bool:
        """Whether a job's watermark waits for the heartbeats of topics without records."""
        job = self.job(name, settings)
        held = {topic for source in job.inputs if not source.broadcast for topic in source.formats} if job else set()
        return bool(held & set(self.beating([name], settings)))

    @abstractmethod
    def check(self, names: Sequence[str], settings: Settings, checkpoints: Path) -> None:
        """Checks that jobs fit their checkpoints and topics.

        Raises:
            NewnormalError: If they do not; see the implementations.
        """


class ChainProgram(Program):
    """The production chain."""

    names = tuple(LINKS)
    modules = MODULES
    by_event_time = True

    def prepare(self, settings: Settings) -> None:
        wanted = {settings.reads(name): settings.topic_config(name) for name in TOPICS}
        kafka, bootstrap = settings.kafka, settings.kafka.bootstrap or ""
        ensure_topics(bootstrap, wanted, kafka.partitions, kafka.replication)
        chosen = {settings.reads(name): settings.chosen_retention(name) for name in TOPICS}
        for topic, changes in change_configs(bootstrap, chosen).items():
            said = {entry.replace(".", "_"): f"{before} → {now}" for entry, (before, now) in changes.items()}
            log.info("the retention of a topic has changed", topic=topic, **said)

    def job(self, name: str, settings: Settings) -> Job | None:
        return JOBS[name](settings) if name in JOBS else None

    def runs(self, name: str, settings: Settings) -> bool:
        return LINKS[name].runs(settings)

    def starts_later(self, name: str) -> bool:
        return LINKS[name].starts_later

    def pause_ms(self, name: str, trigger_ms: int) -> int:
        return LINKS[name].pause_ms(trigger_ms)

    def reads(self, name: str, settings: Settings) -> Sequence[str]:
        return LINKS[name].reads(settings)

    def writes(self, name: str, settings: Settings) -> Sequence[str]:
        return LINKS[name].writes(settings)

    def beating(self, names: Sequence[str], settings: Settings) -> list[str]:
        from_outside = {*topics.FROM_AGENTS, *topics.FROM_OPERATORS}
        read = {topic for name in names if name in JOBS for topic in LINKS[name].inputs}
        return [settings.reads(topic) for topic in sorted(read & from_outside)]

    def rhythms(self, names: Sequence[str], settings: Settings) -> list[Rhythm]:
        """Topics of one kind of agents' messages wait for each other only; those of operators, for ends of windows."""
        beating, groups = self.beating(names, settings), dict[str, list[str]]()
        for topic in topics.FROM_AGENTS:
            if (full := settings.reads(topic)) in beating:
                reader = next(name for name, link in LINKS.items() if topic in link.inputs)
                groups.setdefault(reader, []).append(full)
        of_operators = [full for full in map(settings.reads, topics.FROM_OPERATORS) if full in beating]
        grid_ms = grid(settings.window.step_ms)
        windows = [Rhythm(of_operators, grid_ms)] if of_operators else []
        return [*(Rhythm(some, alone=True) for some in groups.values()), *windows]

    def check(self, names: Sequence[str], settings: Settings, checkpoints: Path) -> None:
        fingerprint.check_partitions(settings, names)
        fingerprint.check(settings, checkpoints, names)


def grid(step_ms: int) -> float:
    """The grid of the heartbeats of operators' topics, milliseconds, for windows that end every ``step_ms``.

    It has each end of a window, and is no wider than heartbeats that are rare; 0: there are so many ends that it is of
    no use.

    >>> grid(10_000), grid(60_000), grid(2_000)
    (10000.0, 15000.0, 0)
    """
    return step_ms / math.ceil(step_ms / 1_000 / RARE_SECONDS) if step_ms >= 2_000 * HEARTBEAT_SECONDS else 0


CHAIN = ChainProgram()
