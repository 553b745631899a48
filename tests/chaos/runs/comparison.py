"""What is verified after a run with faults, and the reference: a version that processes the same input without any."""

from __future__ import annotations

from collections.abc import Mapping

from engine.spec.duration import duration_ms
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST, VersionNames
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version
from tests.chaos.runs.verifier.lives import Restored
from tests.chaos.runs.verifier.verify import Site, Written

REFERENCE = "reference"
"""Name of that version: ``newnormal run --as reference --until now`` runs it."""

_ALL_OF_IT: Mapping[str, int | None] = {FIRST: None}


def make_reference(settings: Settings) -> None:
    """Makes the reference, with all jobs but those that store.

    Args:
        settings: The settings, with the address of Kafka.

    Raises:
        NewnormalError: ``VERSION_NOT_WRITTEN`` if Kafka does not accept it.
    """
    jobs = tuple(job for job in Version.first().jobs if job not in ("sink", "archive"))
    Registry(settings).put(Version(name=REFERENCE, base=FIRST, jobs=jobs, created=1))


def site(
    settings: Settings,
    until: int,
    versions: Mapping[str, int | None] = _ALL_OF_IT,
    restored: Restored | None = None,
) -> Site:
    """What is verified.

    Args:
        settings: The settings with which the versions ran, with the addresses of both servers.
        until: Windows that end by then are closed and compared, epoch milliseconds.
        versions: The versions that ran while there were faults, and the event time from which each read; ``None``: all.
        restored: If the first of them went back to a savepoint meanwhile: when.
    """
    return Site(
        bootstrap=settings.kafka.bootstrap or "",
        elasticsearch=settings.elasticsearch.url or "",
        versions=[
            _written(name, settings.alias, restored if name == FIRST else None, since)
            for name, since in versions.items()
        ],
        reference=_written(REFERENCE, None),
        window=duration_ms(settings.window.size),
        out_of_orderness=duration_ms(settings.watermark.out_of_orderness),
        lateness=settings.window.lateness_ms,
        until=until,
    )


def _written(name: str, alias: str | None, restored: Restored | None = None, since: int | None = None) -> Written:
    suffix = VersionNames(name).suffix
    return Written(name, suffix, f"{alias}{suffix}-2*" if alias else None, restored, since)
