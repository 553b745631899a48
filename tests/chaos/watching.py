"""What a user sees of a running pipeline from outside: its health, its lags, its results."""

from __future__ import annotations

from contextlib import suppress

import httpx

from pipelines.contracts import topics
from pipelines.runtime import processes
from tests.integration.conftest import Pipeline


def health(pipeline: Pipeline) -> tuple[int, str]:
    """Status and text of the pipeline's /health."""
    found = processes.job_processes(pipeline.settings)
    with suppress(httpx.HTTPError, IndexError):
        reply = httpx.get(f"{found[0].url}/health", timeout=8)
        return reply.status_code, reply.text
    return 0, ""


def lags(pipeline: Pipeline) -> list[int | None]:
    """What the pipeline says that its jobs have not read."""
    status = httpx.get(f"{processes.job_processes(pipeline.settings)[0].url}/api/status", timeout=8).json()
    return [job["lag"] for job in status["pipeline"]["jobs"]]


def results(pipeline: Pipeline) -> int:
    """Messages of the features topic."""
    return len(pipeline.read(topics.FEATURES))


def stored(pipeline: Pipeline, end: int) -> int:
    """Documents of single metrics whose windows began before ``end``."""
    return sum(d["metric"].startswith("m") and d["window_start"] < end for d in pipeline.documents())
