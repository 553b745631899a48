"""The version of the chain that a command reads: the one that it was told, or the one that readers see."""

from __future__ import annotations

from deploy.embedded.services import running
from pipelines.contracts.settings import Settings


def shown(settings: Settings, version: str | None) -> Settings:
    """The settings of a version, with the addresses of the servers filled in.

    Args:
        settings: The settings of all versions.
        version: Its name; ``None``: the version that the alias in Elasticsearch shows, or the first one.

    Raises:
        NewnormalError: ``SERVERS_ABSENT``, ``VERSION_UNKNOWN``; as `shown_version`.
    """
    from pipelines.versions.promotion import shown_version  # servers: only for commands that need it
    from pipelines.versions.registry import Registry

    there = running(settings, elasticsearch=version is None)
    return there.of(Registry(there).get(version or shown_version(there) or "v1").names)
