"""Plans a version that begins with the state of a savepoint instead of with a replay."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.jobs import JOBS, LINKS
from pipelines.savepoints.catalogue import Catalogue
from pipelines.savepoints.restoring import Plan
from pipelines.savepoints.savepoint import Savepoint
from pipelines.versions.version import Version


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
