"""What a driver runs: the production chain, or the jobs of somebody's own file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from engine.kafka.admin import ensure_topics
from engine.spec.job import Job
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs import JOBS, LINKS, MODULES, TOPICS
from pipelines.runtime import fingerprint


class Program(ABC):
    """Some jobs by name, and what must be there before they start.

    Attributes:
        names: Names of the jobs, in the order data flow.
        modules: What a Python worker imports to run them.
    """

    names: tuple[str, ...]
    modules: tuple[str, ...]

    @abstractmethod
    def prepare(self, settings: Settings) -> None:
        """Makes the topics that are not there."""

    @abstractmethod
    def job(self, name: str, settings: Settings) -> Job | None:
        """A job; ``None`` for the sink, which is a query of its own."""

    @abstractmethod
    def reads(self, name: str, settings: Settings) -> Sequence[str]:
        """The full names of the topics that a job reads."""

    @abstractmethod
    def beating(self, names: Sequence[str], settings: Settings) -> list[str]:
        """The full names of the topics that need heartbeats while some of the jobs run."""

    @abstractmethod
    def check(self, names: Sequence[str], settings: Settings, checkpoints: Path) -> None:
        """Refuses a start whose jobs do not go with their checkpoints or topics."""


class ChainProgram(Program):
    """The production chain."""

    names = tuple(LINKS)
    modules = MODULES

    def prepare(self, settings: Settings) -> None:
        wanted = {settings.topic(name): topics.config(name) for name in TOPICS}
        ensure_topics(settings.kafka.bootstrap or "", wanted, settings.kafka.partitions, settings.kafka.replication)

    def job(self, name: str, settings: Settings) -> Job | None:
        return JOBS[name](settings) if name in JOBS else None

    def reads(self, name: str, settings: Settings) -> Sequence[str]:
        return LINKS[name].reads(settings)

    def beating(self, names: Sequence[str], settings: Settings) -> list[str]:
        from_outside = {*topics.FROM_AGENTS, *topics.FROM_OPERATORS}
        read = {topic for name in names for topic in LINKS[name].inputs}
        return [settings.topic(topic) for topic in sorted(read & from_outside)]

    def check(self, names: Sequence[str], settings: Settings, checkpoints: Path) -> None:
        fingerprint.check_partitions(settings, names)
        fingerprint.check(settings, checkpoints, names)


CHAIN = ChainProgram()
