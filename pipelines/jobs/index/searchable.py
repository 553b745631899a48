"""Makes what was just stored searchable, at a bounded cost, and says when it was.

A refresh costs some milliseconds and leaves a small segment behind, so it is not done for each document, but once after
each write, and not more often than every ``at_most_every_ms``. When rested it is done at once (a lone novelty is
searchable some 20 ms after it is stored); else the rest of the gap is waited for, which in the worst case is what
`refresh=wait_for` would cost. A write that takes longer than the gap never waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection

from elastic_transport import TransportError
from elasticsearch import Elasticsearch

from pipelines.jobs.index.backoff import Patience

_MANY = 50  # index names in one URL, which is bounded


class Refresher:
    """Refreshes the indices just written to."""

    def __init__(
        self, client: Elasticsearch, everything: str, at_most_every_ms: int, patience: Patience, stop: threading.Event
    ) -> None:
        self._client, self._everything, self._patience, self._stop = client, everything, patience, stop
        self._gap_s, self._last = at_most_every_ms / 1000, float("-inf")

    def refresh(self, indices: Collection[str]) -> int:
        """Epoch milliseconds at which all that was stored before the call was searchable.

        Raises:
            NewnormalError: See `Patience.insist`; the documents are stored all the same.
        """
        self._stop.wait(max(0.0, self._last + self._gap_s - time.monotonic()))
        self._last = time.monotonic()
        names = ",".join(sorted(indices)) if len(indices) <= _MANY else self._everything
        self._patience.insist(lambda: self._once(names))
        return int(time.time() * 1000)

    def _once(self, names: str) -> None:
        reply = self._client.indices.refresh(index=names, ignore_unavailable=True, allow_no_indices=True)
        if reply.body["_shards"]["failed"]:
            raise TransportError("a shard was not refreshed")
