"""Checks that servers which someone else runs answer, before they are used."""

from __future__ import annotations

from engine.spec.errors import NewnormalError
from pipelines.contracts.elasticsearch_client import elasticsearch_client, unusable

TIMEOUT = 10.0
"""Longest time for an answer, seconds."""


def check_kafka(bootstrap: str) -> None:
    """Makes sure that a Kafka cluster answers and lets this client in.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``, ``KAFKA_LOGIN_REFUSED`` or ``KAFKA_TLS_FAILED``.
    """
    from engine.kafka.diagnosis import problem  # noqa: PLC0415  most commands ask no Kafka

    if refused := problem(bootstrap, TIMEOUT):
        raise refused


def check_elasticsearch(url: str) -> None:
    """Makes sure that an Elasticsearch cluster answers, lets this client in and is not red.

    Raises:
        NewnormalError: ``ELASTICSEARCH_UNREACHABLE``, ``ELASTICSEARCH_REFUSED`` or ``ELASTICSEARCH_TLS_FAILED``.
    """
    if refused := elasticsearch_problem(url, TIMEOUT):
        raise refused


def elasticsearch_problem(url: str, timeout: float) -> NewnormalError | None:
    """Why an Elasticsearch cluster cannot be used; ``None`` if it answers within ``timeout`` seconds and is not red."""
    from elasticsearch import ApiError, TransportError  # noqa: PLC0415  loaded only where a cluster is asked

    now = "nothing was started"
    try:
        with elasticsearch_client(url, request_timeout=timeout, max_retries=0) as client:
            status = client.cluster.health()["status"]
    except (ApiError, TransportError) as error:
        return unusable(error, url, now)
    if status != "red":
        return None
    what = f"Elasticsearch at {str(url)!r} cannot be used: its state is red: some indices cannot be used"
    accepted = "http://host:port of a running node; empty to use the embedded one"
    return NewnormalError("ELASTICSEARCH_UNREACHABLE", what, "elasticsearch.url", accepted, now)
