"""The settings with which a version computes, and those in which two versions differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import metadata
from typing import Any

import structlog
from confluent_kafka import KafkaException

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST
from pipelines.versions.registry import Registry
from pipelines.versions.version import Run, Version

OF_JOBS = {
    "watermark": ("normalizer", "log_normalizer"),
    "window": ("extractor", "templates"),
    "detector": ("detector", "log_detector"),
    "incidents": ("incidents",),
}
"""The sections of settings that decide results, with the jobs that follow them."""

log = structlog.get_logger()


def used(settings: Settings, jobs: Collection[str] | None = None) -> dict[str, Any]:
    """The settings that decide the results of some jobs, or of all, as plain data by dotted name.

    >>> from pipelines.contracts.settings import load
    >>> used(load(**{"detector.emit": "all"}), ["log_detector"])["detector.emit"]
    'all'
    """
    tree = settings.model_dump(mode="json", include=set(OF_JOBS))
    sections = [section for section, its in OF_JOBS.items() if jobs is None or not set(its).isdisjoint(jobs)]
    return {f"{section}.{name}": value for section in sections for name, value in tree[section].items()}


_MOST_RUNS = 50
"""How many runs of a version are kept, the newest."""


def note(registry: Registry, settings: Settings, jobs: Collection[str], began: int) -> None:
    """Stores with which release and settings jobs of a version run, for replays and proofs of what it says.

    Versions other than the first keep the settings with which they were made. If Kafka does not take the entry, the
    jobs run all the same, and the log says so.

    Args:
        registry: The versions.
        settings: The settings of this start, those of the command line and of the demo included.
        jobs: Names of the jobs that start.
        began: When they started, epoch milliseconds.
    """
    try:
        if known := registry.all().get(settings.version):
            ran = known.ran | used(settings, jobs) if known.name == FIRST else known.ran
            run = Run(since=began, release=metadata.version("newnormal"), settings=ran | known.settings)
            last = known.runs[-1] if known.runs else None
            if ran != known.ran or last is None or run != last.model_copy(update={"since": began}):
                runs = (*known.runs, run)[-_MOST_RUNS:]
                registry.put(known.model_copy(update={"ran": ran, "runs": runs}))
    except (NewnormalError, KafkaException, TimeoutError) as error:
        log.warning("the settings of this start are not kept for replays", reason=str(error))


def run_at(version: Version, instant: int) -> Run | None:
    """With what a version ran at an instant, epoch milliseconds; ``None`` if that was not kept.

    >>> first, second = (Run(since=since, release="0.1.0", settings={}) for since in (1_000, 2_000))
    >>> version = Version.first().model_copy(update={"runs": (first, second)})
    >>> [run and run.since for run in (run_at(version, instant) for instant in (999, 1_999, 2_000))]
    [None, 1000, 2000]
    """
    return next((run for run in reversed(version.runs) if run.since <= instant), None)


def differing(version: Version, versions: Mapping[str, Version]) -> dict[str, Any]:
    """The settings in which a version differs from its base; the first version: from the defaults.

    Args:
        version: The version.
        versions: All versions by name; a base that was retired is not among them.

    >>> first = Version.first().model_copy(update={"ran": {"detector.emit": "all", "detector.threshold": 50.0}})
    >>> second = Version(name="v2", base="v1", jobs=("sink",), ran=first.ran, settings={"detector.threshold": 30.0})
    >>> known = {"v1": first, "v2": second}
    >>> [differing(version, known) for version in known.values()]
    [{'detector.emit': 'all'}, {'detector.threshold': 30.0}]
    """
    base = versions.get(version.base or "")
    if version.base and base is None:
        return dict(version.settings)
    before = base.ran | base.settings if base else _defaults()
    return {name: value for name, value in (version.ran | version.settings).items() if before.get(name, _NONE) != value}


_NONE = object()


def _defaults() -> dict[str, Any]:
    """The defaults of all settings that decide results, whatever the environment says."""
    fields = Settings.model_fields
    sections = {name: fields[name].default.model_dump(mode="json") for name in OF_JOBS}
    return {f"{section}.{name}": value for section, values in sections.items() for name, value in values.items()}
