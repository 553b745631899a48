"""The jobs of one version of the chain, as a driver runs them."""

from __future__ import annotations

from dataclasses import replace

from engine.spec.job import Job
from engine.spec.source import Source
from engine.spec.steps import Where
from pipelines.contracts.settings import Settings
from pipelines.jobs.links import LINKS
from pipelines.runtime.program import ChainProgram
from pipelines.versions.version import Version


class VersionProgram(ChainProgram):
    """The jobs of a version.

    The jobs that read what another version writes take only records within the version's event times: samples and lines
    from its start until before its end, and windows that lie within the two. Rules and labels of all times count, as
    one from before the start may still be in force.

    Args:
        version: The version.
    """

    def __init__(self, version: Version) -> None:
        self.version, self.names = version, version.jobs

    def job(self, name: str, settings: Settings) -> Job | None:
        job = super().job(name, settings)
        if job is None or name not in self.first:
            return job
        return replace(job, inputs=tuple(self._within(source) for source in job.inputs))

    @property
    def first(self) -> tuple[str, ...]:
        """The jobs that read nothing that another job of the version writes."""
        written = {topic for name in self.names for topic in LINKS[name].outputs}
        return tuple(name for name in self.names if not written & set(LINKS[name].inputs))

    def _within(self, source: Source) -> Source:
        after, before = (">", "<=") if source.time == "window_end" else (">=", "<")
        bounds = [f"{source.time} {after} {self.version.start}"] if self.version.start is not None else []
        bounds += [f"{source.time} {before} {self.version.end}"] if self.version.end is not None else []
        if not bounds or source.broadcast:
            return source
        return replace(source, steps=(Where(" AND ".join(bounds)), *source.steps))
