"""The chain: every job, the topics that it reads and writes, and the function that builds it.

This table is the one place that says how data flow. The topics that the driver makes, the order in which jobs start and
are shown, docs/jobs.md and the picture in the README follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.spec.job import Job
from pipelines.contracts import topics
from pipelines.contracts.settings import Settings
from pipelines.jobs.detect.job import detector, log_detector
from pipelines.jobs.extract.job import extractor
from pipelines.jobs.mine_logs.job import templates
from pipelines.jobs.normalize.job import log_normalizer, normalizer


@dataclass(frozen=True)
class Link:
    """One job of the chain.

    Args:
        name: Its name on the command line, in the status and in its checkpoint.
        folder: Its folder below ``pipelines/jobs``.
        inputs: Names of the topics that it reads, without the namespace.
        outputs: Names of the topics that it writes, without the namespace; that of late records is the last.
        build: Makes the job from the settings; ``None`` for the sink, which writes to Elasticsearch by a query of its
            own (`pipelines.jobs.index.job`).
        does: What it does, for the generated docs.
    """

    name: str
    folder: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    build: Callable[[Settings], Job] | None
    does: str

    def reads(self, settings: Settings) -> tuple[str, ...]:
        """The full names of the topics that it reads."""
        return tuple(settings.topic(name) for name in self.inputs)


CHAIN = (
    Link(
        "normalizer",
        "normalize",
        (topics.RAW_JSON, topics.RAW_TELEGRAF, topics.RAW_COLLECTD),
        (topics.TELEMETRY,),
        normalizer,
        "checks what agents write and their clocks; decides the watermark",
    ),
    Link(
        "log_normalizer",
        "normalize",
        (topics.LOGS_JSON, topics.LOGS_RSYSLOG),
        (topics.LOGS,),
        log_normalizer,
        "checks log lines and their clocks; decides the watermark",
    ),
    Link(
        "extractor",
        "extract",
        (topics.TELEMETRY,),
        (topics.FEATURES, topics.FEATURES_LATE),
        extractor,
        "statistics of each series in event-time windows",
    ),
    Link(
        "templates",
        "mine_logs",
        (topics.LOGS,),
        (topics.LOG_FEATURES, topics.LOGS_LATE),
        templates,
        "mines log templates; counts lines by template and by severity",
    ),
    Link(
        "detector",
        "detect",
        (topics.FEATURES, topics.RULES, topics.LABELS),
        (topics.NOVELTIES, topics.NOVELTIES_LATE),
        detector,
        "what is novel of each series and each machine",
    ),
    Link(
        "log_detector",
        "detect",
        (topics.LOG_FEATURES, topics.RULES, topics.LABELS),
        (topics.NOVELTIES, topics.LOG_FEATURES_LATE),
        log_detector,
        "what is novel of each machine's log",
    ),
    Link("sink", "index", (topics.NOVELTIES,), (), None, "stores verdicts in Elasticsearch"),
)
"""All jobs, in the order data flow."""

LINKS = {link.name: link for link in CHAIN}
"""The jobs by name."""

JOBS: dict[str, Callable[[Settings], Job]] = {link.name: link.build for link in CHAIN if link.build}
"""What builds the jobs that run on the sharded operator."""

TOPICS = tuple(dict.fromkeys((*(name for link in CHAIN for name in (*link.inputs, *link.outputs)), *topics.SHARED)))
"""Names of all topics that the chain needs, without the namespace."""

MODULES = (__name__,)
"""What a Python worker imports to run any of the jobs."""
