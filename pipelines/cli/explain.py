"""`newnormal explain-job`: shows a job's plan in the user's terms, with the cost of its last run."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from engine.explain.plan import explain
from engine.spec.errors import NewnormalError
from pipelines.cli.options import Overrides, is_file, with_namespace
from pipelines.contracts.settings import load


@with_namespace
def explain_job(
    overrides: Overrides,
    name: Annotated[
        str,
        typer.Argument(
            help="normalizer, extractor, detector; log_normalizer, templates, log_detector; calls, places, incidents; "
            "or my_jobs.py:words"
        ),
    ],
) -> None:
    """Show what a job reads, computes, keeps and writes, the cost of its stages, and how even its shards are.

    The cost was measured in the last micro-batches of the last run with this state directory.
    """
    from pipelines.jobs.chain import JOBS  # the jobs load the models
    from pipelines.runtime import job_metrics  # the jobs load the models
    from pipelines.runtime.own_jobs import load_jobs  # the jobs load the models
    from pipelines.runtime.program import CHAIN, Program  # the jobs load the models

    own = is_file(name)
    if not own and name not in JOBS:
        raise NewnormalError("JOB_UNKNOWN", name, "explain-job", ", ".join(JOBS), "nothing was explained")
    settings = load(**overrides)
    program: Program = load_jobs([name]) if own else CHAIN
    for one in program.names if own else [name]:
        figures, job = job_metrics.load(settings.folder("job_metrics"), one), program.job(one, settings)
        if job is not None:
            Console().print(explain(job, figures, settings.engine.shards))
