"""The topics that are archived."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.spec.record import Record
from pipelines.contracts import topics as names
from pipelines.contracts.records import Log, Telemetry
from pipelines.contracts.settings import Settings
from pipelines.jobs.archive.layout import TopicFolder
from pipelines.jobs.archive.reader import ArchiveReader

ARCHIVED: dict[str, type[Record]] = {names.TELEMETRY: Telemetry, names.LOGS: Log}
"""The types of records of the topics that are archived, by their names without the namespace."""


def archived(settings: Settings) -> list[tuple[TopicFolder, type[Record]]]:
    """The folders and the type of records of each archived topic; none if the settings name no archive."""
    path = settings.archive.path
    if path is None:
        return []
    root = Path(path).expanduser().resolve()
    return [(TopicFolder(root, settings.reads(name)), record) for name, record in ARCHIVED.items()]


def readers(settings: Settings, topics: Collection[str]) -> dict[str, ArchiveReader]:
    """What the archive has of some topics, by their full names; other topics are left out.

    Raises:
        NewnormalError: ``ARCHIVE_BROKEN``.
    """
    return {
        folder.topic: ArchiveReader(folder, record) for folder, record in archived(settings) if folder.topic in topics
    }
