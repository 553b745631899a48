"""A version of the chain: which jobs it has, on what it builds, and with which settings it differs."""

from __future__ import annotations

from typing import Any, Self

import structlog
from pydantic import BaseModel, ConfigDict

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings, load
from pipelines.contracts.topics import OF_ALL_VERSIONS
from pipelines.contracts.version_names import FIRST, VersionNames
from pipelines.jobs.links import CHAIN, LINKS, Link

log = structlog.get_logger()

CHANGEABLE = ("watermark", "window", "detector", "incidents", "engine")
"""The sections of settings in which versions may differ; the others say where data are, and hold for all versions."""


class Run(BaseModel):
    """Starts of a version with one release and the same settings.

    Attributes:
        since: When the first of them began, epoch milliseconds.
        release: The release of Newnormal.
        settings: The settings that decide results, by dotted name.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    since: int
    release: str
    settings: dict[str, Any]


class Version(BaseModel):
    """A version as the registry keeps it.

    Attributes:
        name: Its name, e.g. ``v2``.
        base: The version that it was replayed from; ``None`` for the first one.
        jobs: Names of its jobs, in the order in which data flow.
        sources: For each topic that it reads and does not write: the version that writes the topic.
        settings: The settings in which it was told to differ from its base, by dotted name.
        ran: The settings that decide results, by dotted name: those with which the jobs of the first version ran last;
            of another version, those with which its base ran when it was made. Empty if they were not kept.
        runs: With what it ran before and runs now, the oldest first, so that what it said then can be computed again.
        forked: The savepoint of its base from which its first jobs went on; empty: they began without state.
        start: Event time from which on it computes results, epoch milliseconds; ``None``: from the start of the log.
        end: Event time at which it ends; ``None``: it goes on live.
        created: When it was made, epoch milliseconds.
        ended: True if it has an end and has reached it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")  # a later release may have stored more

    name: str
    base: str | None = None
    jobs: tuple[str, ...]
    sources: dict[str, str] = {}
    settings: dict[str, Any] = {}
    ran: dict[str, Any] = {}
    runs: tuple[Run, ...] = ()
    forked: str = ""
    start: int | None = None
    end: int | None = None
    created: int = 0
    ended: bool = False

    @classmethod
    def first(cls) -> Self:
        """The version that exists without a replay: all jobs, and no other version beneath them."""
        return cls(name=FIRST, jobs=tuple(link.name for link in CHAIN))

    @property
    def names(self) -> VersionNames:
        """The names of what it writes and reads."""
        return VersionNames(self.name, self.sources)

    def load(self, **overrides: Any) -> Settings:
        """The settings with which this version runs: those of the user; a version with a base keeps the base's.

        Args:
            overrides: Values of the command line by dotted name; see `pipelines.contracts.settings.load`.

        Raises:
            NewnormalError: ``SETTING_INVALID``.
        """
        return self._load(overrides, self.ran if self.base else {})

    def load_as_run(self, **overrides: Any) -> Settings:
        """The settings with which this version has computed its results, as far as they are known; otherwise `load`."""
        return self._load(overrides, self.ran)

    def _load(self, overrides: dict[str, Any], ran: dict[str, Any]) -> Settings:
        given = {name: value for name, value in overrides.items() if value is not None}
        return load(**given | self._known(ran) | self._known(self.settings)).of(self.names, self.end)

    def _known(self, kept: dict[str, Any]) -> dict[str, Any]:
        """Settings that were kept, without those that this release does not know, of which the log tells."""
        unknown = sorted(name for name in kept if not is_setting(name))
        if unknown:
            told = "this release does not know some settings of the version; it runs without them"
            log.warning(told, version=self.name, settings=", ".join(unknown))
        return {name: value for name, value in kept.items() if name not in unknown}


def is_setting(dotted: str) -> bool:
    """Whether there is a setting of this name.

    >>> is_setting("detector.threshold"), is_setting("detector.gone"), is_setting("gone.threshold")
    (True, False, False)
    """
    section, _, name = dotted.partition(".")
    field = Settings.model_fields.get(section)
    inner = getattr(field.annotation, "model_fields", None) if field else None
    return inner is None and field is not None if not name else inner is not None and name.partition(".")[0] in inner


def from_job(job: str) -> tuple[str, ...]:
    """The jobs of a version that begins with a job: those of its stage, and of all later stages.

    The chain has a stage for each step that data take: check, extract, detect, store; most have a job for metrics and
    one for logs. A version always has both, so that its results are complete.

    Raises:
        NewnormalError: ``JOB_UNKNOWN``.

    >>> from_job("log_detector")
    ('detector', 'log_detector', 'incidents', 'sink')
    """
    replayed = [link for link in CHAIN if link.replayed]
    if job not in LINKS or not LINKS[job].replayed:
        accepted = ", ".join(link.name for link in replayed)
        raise NewnormalError("JOB_UNKNOWN", job, "--job", accepted, "nothing was started")
    stage = _stage(LINKS[job])
    return tuple(link.name for link in replayed if _stage(link) >= stage)


def sources(jobs: tuple[str, ...], base: Version) -> dict[str, str]:
    """For each topic of the chain that none of some jobs writes: the version of a base that writes it."""
    mine = {topic for job in jobs for topic in LINKS[job].outputs}
    others = {topic for link in CHAIN for topic in link.outputs} - mine - OF_ALL_VERSIONS
    return {topic: base.sources.get(topic, base.name) for topic in sorted(others)}


def _stage(link: Link) -> int:
    """Number of steps that data have taken before the job."""
    writers = [other for other in CHAIN if set(other.outputs) & set(link.inputs)]
    return 1 + max((_stage(writer) for writer in writers), default=-1)
