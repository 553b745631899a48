"""A program is a set of jobs that a driver runs: the production chain, or the jobs of a user's file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import structlog

from engine.kafka.admin import change_configs, ensure_topics
from engine.spec.job import Job
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.chain import JOBS, MODULES
from pipelines.jobs.links import LINKS, TOPICS
from pipelines.runtime import fingerprint

log = structlog.get_logger()


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

    @abstractmethod
    def reads(self, name: str, settings: Settings) -> Sequence[str]:
        """The full names of the topics that a job reads."""

    @abstractmethod
    def writes(self, name: str, settings: Settings) -> Sequence[str]:
        """The full names of the topics that a job writes."""

    @abstractmethod
    def beating(self, names: Sequence[str], settings: Settings) -> list[str]:
        """The full names of the topics that need heartbeats while some of the jobs run."""

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

    def reads(self, name: str, settings: Settings) -> Sequence[str]:
        return LINKS[name].reads(settings)

    def writes(self, name: str, settings: Settings) -> Sequence[str]:
        return LINKS[name].writes(settings)

    def beating(self, names: Sequence[str], settings: Settings) -> list[str]:
        from_outside = {*topics.FROM_AGENTS, *topics.FROM_OPERATORS}
        read = {topic for name in names for topic in LINKS[name].inputs}
        return [settings.reads(topic) for topic in sorted(read & from_outside)]

    def check(self, names: Sequence[str], settings: Settings, checkpoints: Path) -> None:
        fingerprint.check_partitions(settings, names)
        fingerprint.check(settings, checkpoints, names)


CHAIN = ChainProgram()
