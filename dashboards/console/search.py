"""Searches in Elasticsearch, whose failures have a stable code."""

from __future__ import annotations

from typing import Any

from elastic_transport import TransportError
from elasticsearch import ApiError

from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client, unusable

Document = dict[str, Any]

REFUSED = "ELASTICSEARCH_QUERY_REFUSED"

_BUSY = frozenset({408, 429})
_FORBIDDEN = frozenset({401, 403})


class Search:
    """The connection of the console to one Elasticsearch.

    Args:
        url: ``http://host:port``; empty: there is none, as where own jobs run, and nothing is found.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        limits: dict[str, Any] = {"request_timeout": 10, "max_retries": 1, "retry_on_timeout": False}
        self._client = elasticsearch_client(url, **limits) if url else None

    def answer(self, index: str, **request: Any) -> Document:
        """The answer to one search; an index that does not exist yet has no documents.

        Raises:
            NewnormalError: ``ELASTICSEARCH_UNREACHABLE``; ``ELASTICSEARCH_REFUSED`` if it wants another account;
                ``ELASTICSEARCH_TLS_FAILED``; ``ELASTICSEARCH_QUERY_REFUSED``.
        """
        if self._client is None:
            return {"hits": {"hits": []}}
        try:
            reply = self._client.search(index=index, ignore_unavailable=True, allow_no_indices=True, **request)
        except (TransportError, ApiError) as error:
            now = "nothing is shown until it answers"
            if _code(error) == REFUSED:
                raise NewnormalError(REFUSED, str(error)[:1_000], "elasticsearch.url", now=now) from None
            raise unusable(error, self._url, now) from None
        return dict(reply.body)

    def documents(self, index: str, **request: Any) -> list[Document]:
        """The documents that a search finds, each with its `_id`; raises what `answer` raises."""
        return [{"_id": hit["_id"], **hit["_source"]} for hit in self.answer(index, **request)["hits"]["hits"]]

    def first(self, index: str, **request: Any) -> Document | None:
        """The first document that a search finds, if there is one; raises what `answer` raises."""
        return next(iter(self.documents(index, size=1, **request)), None)

    def close(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            self._client.close()


class Reader:
    """Asks for some of the documents in one Elasticsearch.

    Args:
        search: The connection.
        incidents: The alias that incidents are read through.
        novelties: The alias that novelties are read through.
    """

    def __init__(self, search: Search, incidents: str, novelties: str) -> None:
        self._search, self._incidents, self._novelties = search, incidents, novelties


def within(**bounds: int) -> Document:
    """The condition that ``@timestamp`` (epoch ms) lies within bounds: ``gte``, ``gt``, ``lte``, ``lt``."""
    return {"range": {"@timestamp": {**bounds, "format": "epoch_millis"}}}


def _code(error: TransportError | ApiError) -> str:
    if isinstance(error, TransportError) or error.status_code in _BUSY or error.status_code >= 500:
        return "ELASTICSEARCH_UNREACHABLE"
    return "ELASTICSEARCH_REFUSED" if error.status_code in _FORBIDDEN else REFUSED
