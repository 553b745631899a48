"""Puts the state of a savepoint into checkpoints: of the same version, or of another one, with any number of shards."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from engine.runtime.rescale import rescaled
from engine.spark.checkpoint_layout import STATE_FORMAT, shards_of
from engine.spark.checkpoint_lock import taken
from engine.spark.checkpoint_offsets import last_committed, next_offsets
from engine.spark.checkpoint_state import shard_states
from engine.spark.checkpoint_topics import IDS
from engine.spark.hadoop_path import HadoopPath, delete, made_here
from engine.spec.errors import NewnormalError
from engine.state import initial
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.chain import JOBS
from pipelines.jobs.links import LINKS
from pipelines.runtime import fingerprint
from pipelines.runtime.program import CHAIN, Program
from pipelines.savepoints.catalogue import Catalogue
from pipelines.savepoints.savepoint import SavedJob, Savepoint
from pipelines.versions.version import Version

_NOTHING = "nothing was changed"
RAW = {topics.TELEMETRY, topics.LOGS}
"""Topics whose records have no identity by which one that is written again could be told from a new one."""
_NEW = ".restored"


@dataclass(frozen=True)
class Plan:
    """What a restoration does.

    Attributes:
        catalogue: The savepoints of the version from which the savepoint is.
        savepoint: The savepoint.
        jobs: Names of the jobs to restore.
        target: The settings of the version whose checkpoints are made.
        shards: Number of shards of each job.
        program: Defines the jobs.
    """

    catalogue: Catalogue
    savepoint: Savepoint
    jobs: tuple[str, ...]
    target: Settings
    shards: int
    program: Program = CHAIN

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints that are made."""
        return self.target.folder("checkpoints")

    def again(self) -> dict[str, int]:
        """For each job that has gone on since the savepoint: how many messages it reads again, heartbeats included."""
        return {job: messages for job in self.jobs if (messages := sum(self._since(job)))}

    def staying(self) -> tuple[str, ...]:
        """The jobs that had better go on where they are: what they would write again would be counted twice.

        They write samples and lines only, and have written all of these since the savepoint. With another number of
        shards they cannot stay.
        """
        apart = {job: shards_of(self.checkpoints / job) not in (None, self.shards) for job in self.jobs}
        return tuple(job for job in self.jobs if _writes_raw(job) and self._has_gone_on(job) and not apart[job])

    def doubled(self) -> str:
        """What will be counted twice, as jobs are restored that read as new what an earlier one writes again; or empty.

        Windows, verdicts and incidents that are written again have the identity of those of before, samples and lines
        have none. A job whose checkpoint is gone has gone on, too, as far as is known.
        """
        gone = [
            job for job in self.jobs if last_committed(self.checkpoints / job) < 0 <= self.savepoint.jobs[job].batch
        ]
        again = [job for job in self.jobs if _writes_raw(job) and (job in gone or self._has_gone_on(job))]
        written = {topic for job in again for topic in LINKS[job].outputs}
        readers = [job for job in self.jobs if job in LINKS and written & set(LINKS[job].inputs)]
        if not readers:
            return ""
        who, what = ", ".join(again), ", ".join(sorted(written))
        told = f"{who} will write {what} again, and {', '.join(readers)} count it twice"
        return f"{told} in the windows since the savepoint; without {who} (--job) they do not"

    def _has_gone_on(self, job: str) -> bool:
        """Whether a job has read further than in the savepoint."""
        return any(self._since(job))

    def _since(self, job: str) -> Iterator[int]:
        """How many messages of each partition a job has read since the savepoint.

        Micro-batches do not tell: those of a restored checkpoint begin at 0.
        """
        saved = self.savepoint.jobs[job].offsets
        for (topic, part), at in next_offsets(self.checkpoints / job).items():
            yield max(0, at - saved.get(topic, {}).get(str(part), 0))

    def check(self) -> None:
        """Refuses what cannot work, before anything is changed.

        Raises:
            NewnormalError: ``SAVEPOINT_FORMAT`` if the state is of a format that this release cannot read;
                ``SETTINGS_FIXED`` if a setting such as the window length differs; ``SAVEPOINT_SHARDS``.
        """
        for job in self.jobs:
            saved = self.savepoint.jobs[job]
            if self.program.job(job, self.target) and saved.state_format != STATE_FORMAT:
                what = f"the state of {job} is of format {saved.state_format}"
                raise NewnormalError("SAVEPOINT_FORMAT", what, self.savepoint.name, f"format {STATE_FORMAT}", _NOTHING)
        if self.shards < 1 or self.target.kafka.partitions % self.shards:
            what = f"{self.shards} shards for topics of {self.target.kafka.partitions} partitions"
            accepted = "a divisor of the number of partitions, so that each shard reads whole partitions"
            raise NewnormalError("SAVEPOINT_SHARDS", what, "--shards", accepted, _NOTHING)
        fingerprint.compare(self.target, self.catalogue.folder / self.savepoint.name, self.jobs)


def restore(plan: Plan, spark: SparkSession) -> None:
    """Makes new checkpoints from a savepoint; those that exist are replaced, one job after the other.

    A new checkpoint has an identity of its own, so the ledger of what was written does not know it: what the job wrote
    after the savepoint is written again.

    Args:
        plan: What is restored; it has been checked.
        spark: A session that reads the state.

    Raises:
        NewnormalError: ``ALREADY_RUNNING`` if a job runs; ``SHARDS_APART``, ``RESCALE_UNSUPPORTED``.
    """
    with taken(plan.checkpoints, plan.jobs):
        built = {job: _built(plan, job, spark) for job in plan.jobs}
        for job, folder in built.items():
            _replace(plan.checkpoints / job, folder)


def _writes_raw(job: str) -> bool:
    """Whether a job writes nothing but records that cannot be told from new ones when they are written again."""
    return job in LINKS and bool(LINKS[job].outputs) and set(LINKS[job].outputs) <= RAW


def _replace(checkpoint: Path, folder: Path) -> None:
    """Puts what was made in the place of a checkpoint."""
    if isinstance(checkpoint, HadoopPath):
        # An object store renames a folder file by file. `metadata` goes first and comes last: a job that has written
        # does not start without it, so a restoration that was interrupted has to be repeated.
        (checkpoint / "metadata").unlink(missing_ok=True)
        delete(checkpoint)
        last = folder.parent / f"{folder.name}.metadata"
        (folder / "metadata").replace(last)
        folder.rename(checkpoint)
        last.rename(checkpoint / "metadata")
        return
    old = checkpoint.parent / f"{checkpoint.name}.replaced"
    delete(old)
    if checkpoint.exists():
        checkpoint.rename(old)
    folder.rename(checkpoint)
    delete(old)


def _built(plan: Plan, job: str, spark: SparkSession) -> Path:
    """A new checkpoint of a job, in a folder beside its place."""
    source, saved = plan.catalogue.job_folder(plan.savepoint, job), plan.savepoint.jobs[job]
    folder = plan.checkpoints / f"{job}{_NEW}"
    delete(folder)
    states: list[dict[str, bytes]] = []
    if definition := plan.program.job(job, plan.target):
        states = rescaled(definition, shard_states(spark, source, saved.shards), plan.shards)
    with made_here(folder) as here:
        initial.write(here, states, _offsets(plan, job, saved))
        for name in ("job.json", "settings.json", IDS):
            if (source / name).exists():
                shutil.copyfile(source / name, here / name)
        if states:
            (here / "layout.json").write_text(json.dumps({"shards": plan.shards, "format": STATE_FORMAT}))
        (here / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    return folder


def _offsets(plan: Plan, job: str, saved: SavedJob) -> Mapping[tuple[str, int], int]:
    """Where the job begins to read: the same topics as when it was saved; topics of its own version from the start."""
    topics = plan.program.reads(job, plan.target)
    kept = {topic: offsets for topic, offsets in saved.offsets.items() if topic in topics}
    return {(topic, int(p)): offset for topic, offsets in kept.items() for p, offset in offsets.items()}


def forked(catalogue: Catalogue, savepoint: Savepoint, version: Version, target: Settings, shards: int | None) -> Plan:
    """Plans the checkpoints of a version whose first jobs go on from a savepoint of its base.

    A job that stores documents begins with what the version itself writes, so it needs no state.

    Args:
        catalogue: The savepoints of the base.
        savepoint: The savepoint.
        version: The version.
        target: Its settings.
        shards: Number of shards; ``None``: as in the savepoint.

    Raises:
        NewnormalError: ``SAVEPOINT_CHAIN`` if a job with state would read what another job of the version writes: what
            its state has read already is not in that topic.
    """
    own = {topic for job in version.jobs for topic in LINKS[job].outputs}
    reading = [job for job in version.jobs if job in JOBS and own & set(LINKS[job].inputs)]
    inner = [job for job in reading if not LINKS[job].fresh]
    kept = [job for job in version.jobs if job in JOBS and job not in reading]
    if inner:
        what = (
            f"{', '.join(inner)} would read topics of {version.name}, which begin empty, and has read those of before"
        )
        accepted = "--job detector; or `newnormal replay` for the whole chain"
        raise NewnormalError("SAVEPOINT_CHAIN", what, "newnormal savepoint fork", accepted, "nothing was changed")
    jobs = tuple(job for job in kept if job in savepoint.jobs)
    missing = [job for job in kept if job not in savepoint.jobs]
    if not jobs or missing:
        what = f"savepoint {savepoint.name} has no state of {', '.join(missing)}"
        accepted = f"a savepoint with {', '.join(kept)}"
        raise NewnormalError("SAVEPOINT_CHAIN", what, "newnormal savepoint fork", accepted, "nothing was changed")
    return Plan(catalogue, savepoint, jobs, target, shards or savepoint.jobs[jobs[0]].shards)
