"""What a view keeps of the messages of its topics: of those of the detector, or of a job of one's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from pipelines.query.view.database import Database
from pipelines.query.view.progress import Progress


class Gathering(ABC):
    """The messages of one write of a view, as entries of its database."""

    @abstractmethod
    def take(self, message: Any, place: Progress) -> None:
        """Takes in a message.

        Args:
            message: The message.
            place: The progress in its partition; may be changed.

        Raises:
            NewnormalError, ValueError, KeyError, TypeError, AttributeError: If it cannot be read.
        """

    @abstractmethod
    def entries(
        self, database: Database, places: Mapping[tuple[str, int], Progress]
    ) -> tuple[dict[bytes, bytes], Collection[bytes]]:
        """The entries to write, and the keys of those to remove.

        Args:
            database: The database before the write.
            places: The progress in the partitions that the messages came from; may be changed.
        """


class Content(ABC):
    """What a view keeps.

    Attributes:
        topics: The full names of the topics that it follows. The first one has as many partitions as the view.
        layout: Text that says how entries are made; where it changes, the topics are read anew.
    """

    topics: tuple[str, ...]
    layout: str

    @abstractmethod
    def gathering(self) -> Gathering:
        """An empty one, for the next write."""
