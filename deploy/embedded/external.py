"""Checks that servers which someone else runs answer, before they are used."""

from __future__ import annotations

from deploy.embedded.kafka import answers
from engine.spec.errors import NewnormalError

TIMEOUT = 10.0
"""Longest time for an answer, seconds."""


def check_kafka(bootstrap: str) -> None:
    """Makes sure that a Kafka cluster answers.

    Raises:
        NewnormalError: ``KAFKA_UNREACHABLE``.
    """
    if not answers(bootstrap, TIMEOUT):
        raise NewnormalError(
            "KAFKA_UNREACHABLE",
            f"no Kafka broker answers at {bootstrap!r} within {TIMEOUT:.0f} s",
            "kafka.bootstrap",
            "host:port of a running broker; empty to use the embedded one",
            "nothing was started",
        )


def check_elasticsearch(url: str) -> None:
    """Makes sure that an Elasticsearch cluster answers and is not red.

    Raises:
        NewnormalError: ``ELASTICSEARCH_UNREACHABLE``.
    """
    if reason := elasticsearch_problem(url, TIMEOUT):
        raise NewnormalError(
            "ELASTICSEARCH_UNREACHABLE",
            f"Elasticsearch at {url!r} cannot be used: {reason}",
            "elasticsearch.url",
            "http://host:port of a running node; empty to use the embedded one",
            "nothing was started",
        )


def elasticsearch_problem(url: str, timeout: float) -> str:
    """Why an Elasticsearch cluster cannot be used; empty if it answers within ``timeout`` seconds and is not red."""
    from elasticsearch import ApiError, Elasticsearch, TransportError  # noqa: PLC0415  loaded only where a cluster is asked

    try:
        with Elasticsearch(url, request_timeout=timeout, max_retries=0) as client:
            status = client.cluster.health()["status"]
    except (ApiError, TransportError, ValueError) as error:
        return str(error.message if isinstance(error, ApiError | TransportError) else error) or type(error).__name__
    return "its state is red: some indices cannot be used" if status == "red" else ""
