"""Refreshes indices, so that a search finds stored documents soon, at a bounded cost.

A refresh takes some milliseconds and leaves a small segment behind. So there is one refresh after each write, and at
least ``at_most_every_ms`` between two of them. If the last refresh was earlier than that, the next one is made at once:
a search finds a single novelty some 20 ms after it was stored. Otherwise the call waits for the rest of that time,
which is at worst what `refresh=wait_for` would cost. A write that takes longer than that time never waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection

from elastic_transport import TransportError
from elasticsearch import Elasticsearch

from engine.clock import now_ms
from pipelines.jobs.sink.backoff import Patience

_MANY = 50  # most index names in one URL, whose length is bounded


class Refresher:
    """Refreshes the indices that were just written.

    Args:
        client: The Elasticsearch client.
        everything: A pattern of all indices, for refreshes of many indices.
        at_most_every_ms: Least time between two refreshes, milliseconds.
        patience: Repeats the request while the server does not answer.
        stop: When set, no call waits any longer.
    """

    def __init__(
        self, client: Elasticsearch, everything: str, at_most_every_ms: int, patience: Patience, stop: threading.Event
    ) -> None:
        self._client, self._everything, self._patience, self._stop = client, everything, patience, stop
        self._gap_s, self._last = at_most_every_ms / 1000, float("-inf")

    def refresh(self, indices: Collection[str]) -> int:
        """Refreshes indices, after a wait if the last refresh was a moment ago.

        Returns:
            Epoch milliseconds; from then on a search finds all documents that were stored before the call.

        Raises:
            NewnormalError: See `Patience.insist`; the documents are stored nevertheless.
        """
        self._stop.wait(max(0.0, self._last + self._gap_s - time.monotonic()))
        self._last = time.monotonic()
        names = ",".join(sorted(indices)) if len(indices) <= _MANY else self._everything
        self._patience.insist(lambda: self._once(names))
        return now_ms()

    def _once(self, names: str) -> None:
        reply = self._client.indices.refresh(index=names, ignore_unavailable=True, allow_no_indices=True)
        if reply.body["_shards"]["failed"]:
            raise TransportError("a shard was not refreshed")
