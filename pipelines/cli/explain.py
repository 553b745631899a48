"""`newnormal explain-job`: a job's plan in its user's terms, with what it cost when it last ran."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from engine.explain import explain
from engine.spec.errors import NewnormalError
from pipelines.cli.options import Namespace, StateDir, overrides
from pipelines.contracts.settings import load


def explain_job(
    name: Annotated[
        str, typer.Argument(help="normalizer, extractor, detector; log_normalizer, templates, log_detector")
    ],
    state_dir: StateDir = None,
    namespace: Namespace = None,
) -> None:
    """Show what a job reads, computes, keeps and writes, what its stages cost, and how even its shards are.

    The cost is that of the last micro-batches of the last run in this state directory.
    """
    from pipelines.jobs import JOBS  # noqa: PLC0415  the jobs load the models
    from pipelines.runtime import job_metrics  # noqa: PLC0415  the jobs load the models

    if name not in JOBS:
        raise NewnormalError("JOB_UNKNOWN", name, "explain-job", ", ".join(JOBS), "nothing was explained")
    settings = load(**overrides(None, None, state_dir, namespace))
    figures = job_metrics.load(settings.folder("job_metrics"), name)
    Console().print(explain(JOBS[name](settings), figures, settings.engine.shards))
