"""What is verified after a run with faults, and the reference: a version that processes the same input without any."""

from __future__ import annotations

from collections.abc import Sequence

from engine.spec.duration import duration_ms
from pipelines.chaos.verifier.lives import Restored
from pipelines.chaos.verifier.verify import Site, Written
from pipelines.contracts.settings import Settings
from pipelines.contracts.version_names import FIRST, VersionNames
from pipelines.versions.registry import Registry
from pipelines.versions.version import Version

REFERENCE = "reference"
"""Name of that version: ``newnormal run --as reference --until now`` runs it."""


def make_reference(settings: Settings) -> None:
    """Makes the reference, with all jobs but those that store.

    Args:
        settings: The settings, with the address of Kafka.

    Raises:
        NewnormalError: ``VERSION_NOT_WRITTEN`` if Kafka does not accept it.
    """
    jobs = tuple(job for job in Version.first().jobs if job not in ("sink", "archive"))
    Registry(settings).put(Version(name=REFERENCE, base=FIRST, jobs=jobs, created=1))


def site(settings: Settings, until: int, versions: Sequence[str] = (FIRST,), restored: Restored | None = None) -> Site:
    """What is verified.

    Args:
        settings: The settings with which the versions ran, with the addresses of both servers.
        until: Windows that end by then are closed and compared, epoch milliseconds.
        versions: The versions that ran while there were faults.
        restored: If the first of them went back to a savepoint meanwhile: when.
    """
    return Site(
        bootstrap=settings.kafka.bootstrap or "",
        elasticsearch=settings.elasticsearch.url or "",
        versions=[_written(name, settings.alias, restored if name == FIRST else None) for name in versions],
        reference=_written(REFERENCE, None),
        window=duration_ms(settings.window.size),
        out_of_orderness=duration_ms(settings.watermark.out_of_orderness),
        lateness=duration_ms(settings.window.allowed_lateness),
        until=until,
    )


def _written(name: str, alias: str | None, restored: Restored | None = None) -> Written:
    suffix = VersionNames(name).suffix
    return Written(name, suffix, f"{alias}{suffix}-2*" if alias else None, restored)
