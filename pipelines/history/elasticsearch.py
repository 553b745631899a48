"""History from an index of Elasticsearch with documents of Metricbeat, Elastic Agent and the like.

A slice of time is read with a point in time and ``search_after``, in the order of ``@timestamp``. Each document is read
as the normalizer reads it from the topic of agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from threading import Event
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from elasticsearch import ApiError, Elasticsearch, TransportError

from engine.address import Address
from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client
from pipelines.history.importing import HistorySource
from pipelines.history.intake import Intake, StoppedError, TooMuchError
from pipelines.history.login import option

MOST_DOCUMENTS = 200_000
"""Documents of a slice at most."""

_PAGE, _KEPT = 1_000, "2m"
_NOW = "what was imported stays, and the same command goes on there"
_PASSING = (429, 502, 503, 504)


class ElasticsearchHistory(HistorySource):
    """The documents of an index, an alias, a data stream, or a pattern of these.

    Args:
        url: The server, with its login.
        index: The index.
        query: Which documents, in Lucene's syntax; empty: all.
        stop: When set, reading ends.
    """

    def __init__(self, url: Address, index: str, query: str, stop: Event) -> None:
        self._url, self._index, self._stop = url, index, stop
        self._client: Elasticsearch = elasticsearch_client(
            url, request_timeout=60.0, max_retries=6, retry_on_timeout=True, retry_on_status=_PASSING
        )
        self._filters: list[dict[str, Any]] = [{"query_string": {"query": query}}] if query else []
        self.origin = f"elasticsearch {url} {index}" + (f" {query}" if query else "")

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def read(self, begin: int, end: int, intake: Intake) -> pa.Table:
        try:
            count = int(self._client.count(index=self._index, query=self._within(begin, end))["count"])
            if count > MOST_DOCUMENTS:
                raise TooMuchError(f"{count:,} documents")
            records = intake.records(self._documents(begin, end), end)
        except (ApiError, TransportError) as error:
            raise self._refusal(error) from None
        times = records["time"]
        return records.filter(pc.and_(pc.greater_equal(times, begin), pc.less(times, end)))

    def _documents(self, begin: int, end: int) -> Iterator[bytes]:
        point = self._client.open_point_in_time(index=self._index, keep_alive=_KEPT)["id"]
        after: list[Any] | None = None
        try:
            while True:
                if self._stop.is_set():
                    raise StoppedError
                answer = self._client.search(
                    pit={"id": point, "keep_alive": _KEPT}, query=self._within(begin, end), size=_PAGE,
                    sort=[{"@timestamp": "asc"}, {"_shard_doc": "asc"}], search_after=after,
                    allow_partial_search_results=False, track_total_hits=False,
                )  # fmt: skip
                point, hits = answer.get("pit_id", point), answer["hits"]["hits"]
                yield from (orjson.dumps(hit.get("_source") or {}) for hit in hits)
                if len(hits) < _PAGE:
                    return
                after = hits[-1]["sort"]
        finally:
            with suppress(ApiError, TransportError):
                self._client.close_point_in_time(id=point)

    def _within(self, begin: int, end: int) -> dict[str, Any]:
        times = {"@timestamp": {"gte": begin, "lt": end, "format": "epoch_millis"}}
        return {"bool": {"filter": [{"range": times}, *self._filters]}}

    def _refusal(self, error: ApiError | TransportError) -> NewnormalError:
        status = error.status_code if isinstance(error, ApiError) else 0
        why = visible(str(error))[:300]
        if status in (401, 403):
            accepted = "an account that may read the index: --api-key-file, or --user with --password-file"
            return NewnormalError("IMPORT_LOGIN", why, str(self._url), accepted, _NOW)
        if status and status not in _PASSING:
            accepted = "an index, alias, data stream or pattern with documents that have @timestamp"
            return NewnormalError("IMPORT_REFUSED", why, f"{self._url} {self._index}", accepted, _NOW)
        accepted = "a server that answers: see its address, certificate and log"
        return NewnormalError("IMPORT_UNREACHABLE", why, str(self._url), accepted, _NOW)


def index_name(text: str) -> str:
    """The name of an index, or a pattern.

    Raises:
        NewnormalError: ``IMPORT_OPTION``.
    """
    if not text or len(text) > 500 or not text.isprintable() or set(text) & set(' "\\<>|#?/'):
        raise option("INDEX", f"{visible(text)[:80]!r} is no index", "e.g. metricbeat-* or metrics-system.*-default")
    return text
