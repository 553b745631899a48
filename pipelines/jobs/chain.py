"""The functions that build the production jobs, for each link of the chain; `pipelines.jobs.links` has their topics."""

from __future__ import annotations

from collections.abc import Callable

from engine.spec.job import Job
from pipelines.contracts.settings import Settings
from pipelines.jobs.calls.job import calls
from pipelines.jobs.detectors.job import detector, log_detector
from pipelines.jobs.extractor import extractor
from pipelines.jobs.incidents.job import grouper
from pipelines.jobs.normalizers import log_normalizer, normalizer
from pipelines.jobs.places.job import places
from pipelines.jobs.templates.job import templates

JOBS: dict[str, Callable[[Settings], Job]] = {
    "normalizer": normalizer,
    "log_normalizer": log_normalizer,
    "extractor": extractor,
    "templates": templates,
    "detector": detector,
    "log_detector": log_detector,
    "calls": calls,
    "places": places,
    "incidents": grouper,
}
"""The jobs on the engine's sharded operator, by name; the others have queries of their own (`pipelines.jobs.sink.job`,
`pipelines.jobs.archive.job`)."""

MODULES = (__name__, "models.compiled")
"""The modules that a Python worker of Spark must import to run any of the jobs."""
