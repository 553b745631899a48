"""The names of everything that one version of the chain writes and keeps.

A version is a set of jobs with topics, indices, checkpoints, transactional ids and ledgers of its own, so that a replay
with another setting cannot touch what runs. The first version, ``v1``, has the plain names; others carry their name:

    topic        features             features-v2
    indices      novelties-2026.11.22 novelties-v2-2026.11.22
    folder       checkpoints/default  checkpoints/default@v2
    transactions extractor.writer     v2@extractor.writer

No name of a topic has a dash, and no namespace an ``@``, so that no version can be taken for a namespace or a topic.
Topics of agents and operators, the ground truth and the ledger's topic belong to all versions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.spec.errors import NewnormalError
from pipelines.contracts import topics

FIRST = "v1"
"""The version that `newnormal run` runs unless another one is named."""

PROOF = "proof"
"""How the names begin of versions that `newnormal prove` makes and removes."""

_NAME = re.compile(r"[a-z][a-z0-9]{0,29}")
ACCEPTED = "small letters and digits, a letter first, up to 30 characters, e.g. v2"


@dataclass(frozen=True)
class VersionNames:
    """The names of one version.

    Args:
        version: Name of the version.
        sources: For topics that the version reads and does not write: the version that writes them, by topic.

    Raises:
        NewnormalError: ``VERSION_INVALID`` if the name cannot be used.

    >>> v2 = VersionNames("v2", {"telemetry": "v1"})
    >>> v2.writes("features"), v2.reads("features"), v2.reads("telemetry"), v2.reads("rules")
    ('features-v2', 'features-v2', 'telemetry', 'rules')
    """

    version: str = FIRST
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.version):
            raise NewnormalError(
                "VERSION_INVALID", f"{self.version!r} is no name of a version", "--as", ACCEPTED, "nothing was started"
            )

    def writes(self, topic: str) -> str:
        """The name of a topic that the version writes, without the namespace."""
        return _of(topic, self.version)

    def reads(self, topic: str) -> str:
        """The name of a topic that the version reads, without the namespace."""
        return _of(topic, self.sources.get(topic, self.version))

    @property
    def suffix(self) -> str:
        """What follows names of indices: nothing for the first version, otherwise a dash and the name."""
        return "" if self.version == FIRST else f"-{self.version}"

    @property
    def mark(self) -> str:
        """What is put before names of jobs in transactional ids and consumer groups."""
        return "" if self.version == FIRST else f"{self.version}@"


def plain(topic: str) -> str:
    """The name of a topic of any version as it is in the first version; a user's own topics keep their names.

    >>> plain("features.late-v2"), plain("features.late"), plain("my-topic")
    ('features.late', 'features.late', 'my-topic')
    """
    name, dash, version = topic.rpartition("-")
    versioned = bool(dash) and name in topics.NAMES and name not in topics.OF_ALL_VERSIONS and _NAME.fullmatch(version)
    return name if versioned else topic


def _of(topic: str, version: str) -> str:
    common = topic in topics.OF_ALL_VERSIONS or version == FIRST
    return topic if common else f"{topic}-{version}"
