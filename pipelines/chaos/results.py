"""What a user sees of the pipeline while it is disturbed: the number of documents that can be found."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from elasticsearch import ApiError, TransportError

from pipelines.contracts.elasticsearch_client import elasticsearch_client

_TIMEOUT_SECONDS = 3.0


@dataclass
class Results:
    """Counts the documents of the index, again and again.

    Args:
        url: URL of Elasticsearch.
        index: The alias or the pattern of the indices.
        began: Time 0 of the course, seconds of the monotonic clock.

    Attributes:
        course: The count at each look: seconds since the beginning, and the number of documents.
        known: The last count; it stays while Elasticsearch does not answer.
    """

    url: str
    index: str
    began: float = field(default_factory=time.monotonic)
    course: list[tuple[float, int]] = field(default_factory=list)
    known: int = 0

    def __post_init__(self) -> None:
        self._client = elasticsearch_client(self.url, request_timeout=_TIMEOUT_SECONDS, max_retries=0)

    def look(self) -> int:
        """The number of documents now, or the last known one while Elasticsearch does not answer."""
        try:
            answer = self._client.count(index=self.index, ignore_unavailable=True, allow_no_indices=True)
        except (ApiError, TransportError):
            return self.known
        self.known = int(answer["count"])
        self.course.append((time.monotonic() - self.began, self.known))
        return self.known

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()
