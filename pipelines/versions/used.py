"""The settings with which a version computes, and those in which two versions differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import structlog
from confluent_kafka import KafkaException

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version

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


def note(registry: Registry, settings: Settings, jobs: Collection[str]) -> None:
    """Stores with which settings jobs of the first version run, for replays of it.

    Other versions keep the settings with which they were made. If Kafka does not take the entry, the jobs run all the
    same, and the log says so.

    Args:
        registry: The versions.
        settings: The settings of this start, those of the command line and of the demo included.
        jobs: Names of the jobs that start.
    """
    try:
        known = registry.all().get(FIRST)
        if known and (ran := known.ran | used(settings, jobs)) != known.ran:
            registry.put(known.model_copy(update={"ran": ran}))
    except (NewnormalError, KafkaException, TimeoutError) as error:
        log.warning("the settings of this start are not kept for replays", reason=str(error))


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
