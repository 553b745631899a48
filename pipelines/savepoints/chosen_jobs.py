"""Which jobs of a savepoint a command is about. Nothing here loads Spark, so that `savepoint show` answers at once."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.runtime.program import CHAIN, Program
from pipelines.savepoints.savepoint import Savepoint


def chosen_jobs(savepoint: Savepoint, asked: list[str] | None, program: Program = CHAIN) -> tuple[str, ...]:
    """The jobs that were asked for, in the order in which data flow; all jobs of the savepoint without a wish.

    Raises:
        NewnormalError: ``JOB_UNKNOWN`` if the savepoint does not have one of them, or the program does not define it.
    """
    wrong = [job for job in asked or () if job not in savepoint.jobs]
    if wrong:
        accepted = ", ".join(savepoint.jobs)
        raise NewnormalError(
            "JOB_UNKNOWN", ", ".join(wrong), f"savepoint {savepoint.name}", accepted, "nothing was changed"
        )
    chosen = tuple(job for job in savepoint.jobs if not asked or job in asked)
    if undefined := [job for job in chosen if job not in program.names]:
        accepted = "--file with the file that defines these jobs; no --file for the jobs of the chain"
        raise NewnormalError("JOB_UNKNOWN", ", ".join(undefined), "--file", accepted, "nothing was changed")
    return chosen
