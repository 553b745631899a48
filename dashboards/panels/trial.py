"""Tries the searches of panels on an Elasticsearch, and counts the rows that each would show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from elastic_transport import TransportError
from elasticsearch import ApiError

from dashboards.panels.answer import Request
from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client, unusable


@dataclass(frozen=True)
class Trial:
    """What a panel would show.

    Args:
        dashboard: Title of the dashboard.
        panel: Title of the panel.
        rows: Rows that hold something; 0 if the panel would be empty.
    """

    dashboard: str
    panel: str
    rows: int


def tried(url: str, requests: Iterable[Request]) -> Iterator[Trial]:
    """Sends the searches one by one.

    Raises:
        NewnormalError: ``ELASTICSEARCH_UNREACHABLE``, or ``ELASTICSEARCH_QUERY_REFUSED`` with the panel and the reason.
    """
    with elasticsearch_client(url, request_timeout=30, max_retries=0) as client:
        for request in requests:
            where = f"{request.dashboard}: {request.panel}"
            try:
                answer = client.search(index=request.index, body=request.body, ignore_unavailable=True).body
            except ApiError as error:
                raise NewnormalError(
                    "ELASTICSEARCH_QUERY_REFUSED", str(error), where, "a search that it answers", "the check ended"
                ) from None
            except TransportError as error:
                raise unusable(error, url, "the check ended") from None
            # where no index is found, Elasticsearch answers without any aggregation
            empty = "aggs" in request.body and "aggregations" not in answer
            rows = [] if empty else request.rows(answer)
            names = set(request.measures.values())
            full = [row for row in rows if not names or any(row[name] not in (None, 0) for name in names)]
            yield Trial(request.dashboard, request.panel, len(full))
