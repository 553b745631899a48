"""The gateway's own figures, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pipelines.gateway.limits import InFlight


class Metrics:
    """Counts requests.

    Args:
        in_flight: The bytes that are not answered yet.
    """

    def __init__(self, in_flight: InFlight) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        of = self._registry
        self._requests = Counter(
            "newnormal_gateway_requests", "Requests, by protocol and status", ["protocol", "status"], registry=of
        )
        self._refused = Counter(
            "newnormal_gateway_refused", "Requests of which nothing was taken", ["protocol", "code"], registry=of
        )
        self._records = Counter(
            "newnormal_gateway_records", "Samples and log lines that Kafka has acknowledged", ["protocol"], registry=of
        )
        self._bytes = Counter("newnormal_gateway_received_bytes", "Bytes as they were sent", ["protocol"], registry=of)
        self._seconds = Histogram(
            "newnormal_gateway_seconds", "Seconds from a request's headers to its answer", ["protocol"], registry=of
        )
        held = Gauge("newnormal_gateway_in_flight_bytes", "Bytes of requests that are not answered", registry=of)
        held.set_function(lambda: in_flight.held)

    def answered(self, protocol: str, status: int, seconds: float, received: int) -> None:
        """Counts an answered request."""
        self._requests.labels(protocol, str(status)).inc()
        self._bytes.labels(protocol).inc(received)
        self._seconds.labels(protocol).observe(seconds)

    def received(self, protocol: str, count: int) -> None:
        """Counts bytes that came without a request."""
        self._bytes.labels(protocol).inc(count)

    def refused(self, protocol: str, code: str, count: int = 1) -> None:
        """Counts requests, or lines of StatsD, of which nothing was taken."""
        self._refused.labels(protocol, code).inc(count)

    def written(self, protocol: str, records: int) -> None:
        """Counts records that Kafka has acknowledged."""
        self._records.labels(protocol).inc(records)

    def page(self) -> bytes:
        """All figures as text."""
        return generate_latest(self._registry)
