"""A savepoint: what its manifest says of the jobs whose state it holds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import BaseModel, ConfigDict

from engine.spec.errors import NewnormalError


class SavedJob(BaseModel):
    """The copy of one job's checkpoint.

    Attributes:
        batch: Number of the last micro-batch in it; -1 before the first.
        offsets: The next offsets after that micro-batch, by topic and partition (as text).
        shards: Number of shards; 0 for a job without state.
        state_format: Version of the state, see `engine.spark.checkpoint_layout.STATE_FORMAT`; 0 without state.
        bytes: Size of its files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int
    offsets: dict[str, dict[str, int]]
    shards: int = 0
    state_format: int = 0
    bytes: int = 0


class Savepoint(BaseModel):
    """The manifest of a savepoint, ``savepoint.json`` in its folder.

    The state and the offsets of each job agree: they are those after one of its micro-batches. The jobs of a chain are
    copied one after the other, so the topics between them carry the rest: what one has written and the next one has not
    read.

    Attributes:
        name: Its name.
        version: The version of the chain whose jobs were copied.
        namespace: The namespace of that version.
        created: When it was made, epoch milliseconds.
        program: The release of Newnormal that made it.
        settings: The settings of the sections in which versions may differ.
        jobs: The jobs by name, in the order in which data flow.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str
    namespace: str = ""
    created: int
    program: str
    settings: dict[str, Any]
    jobs: dict[str, SavedJob]

    @property
    def bytes(self) -> int:
        """Size of all files; those that the checkpoint still has take no further space."""
        return sum(job.bytes for job in self.jobs.values())

    def chosen(self, asked: Collection[str] | None, defined: Collection[str]) -> tuple[str, ...]:
        """The jobs that were asked for, in the order in which data flow; all jobs of the savepoint without a wish.

        Args:
            asked: Names of jobs.
            defined: Names of the jobs that the program defines.

        Raises:
            NewnormalError: ``JOB_UNKNOWN`` if the savepoint does not have one of them, or the program not define it.
        """
        now = "nothing was changed"
        if wrong := [job for job in asked or () if job not in self.jobs]:
            place, accepted = f"savepoint {self.name}", ", ".join(self.jobs)
            raise NewnormalError("JOB_UNKNOWN", ", ".join(wrong), place, accepted, now)
        chosen = tuple(job for job in self.jobs if not asked or job in asked)
        if undefined := [job for job in chosen if job not in defined]:
            accepted = "--file with the file that defines these jobs; no --file for the jobs of the chain"
            raise NewnormalError("JOB_UNKNOWN", ", ".join(undefined), "--file", accepted, now)
        return chosen
