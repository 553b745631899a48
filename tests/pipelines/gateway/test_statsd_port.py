"""Lines of StatsD that are sent over UDP and TCP are in Kafka when the gateway has ended, each once."""

from __future__ import annotations

import socket
from collections import Counter
from uuid import uuid4

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings, load
from pipelines.gateway.limits import InFlight
from pipelines.gateway.metrics import Metrics
from pipelines.gateway.serving import Gateway
from pipelines.gateway.statsd_port import StatsdPort
from pipelines.gateway.writer import Writer
from tests.pipelines.gateway.broker import Broker, samples


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def with_statsd(broker: Broker) -> Settings:
    own = broker.named(uuid4().hex[:8])
    gateway = own.gateway.model_copy(update={"statsd_port": free_port(), "statsd_interval": "1s"})
    return own.model_copy(update={"gateway": gateway})


def test_lines_over_udp_and_tcp_become_samples_of_their_machines(broker: Broker) -> None:
    own = with_statsd(broker)
    gateway, at = Gateway(own), ("127.0.0.1", own.gateway.statsd_port)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.create_connection(at) as tcp:
            for number in range(50):
                udp.sendto(f"n:2|c|@0.5|#host:a\nt:{number}|ms|#host:a".encode(), at)
                tcp.sendall(b"n:3|c|#host:a\nm:1|c\n")
            udp.sendto(b"broken", at)
            tcp.shutdown(socket.SHUT_WR)
            assert tcp.recv(1) == b""  # the gateway has read all, and ends the connection
    finally:
        gateway.close()
    totals: Counter[tuple[str, str]] = Counter()
    for time, machine, metric, value, kind in samples(own):
        assert time > 1_700_000_000_000
        if kind == "count":
            totals[machine, metric] += int(value)
    assert totals == {("a", "n"): 50 * 4 + 50 * 3, ("a", "t.count"): 50, ("127.0.0.1", "m"): 50}


def test_a_port_that_is_taken_is_told_when_the_gateway_starts() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings = load(**{"gateway.statsd_port": other.getsockname()[1]})
        writer = Writer("127.0.0.1:9", 50, 10**6)
        with pytest.raises(NewnormalError) as told:
            StatsdPort(settings, writer, Metrics(InFlight(1)))
        writer.close()
    assert told.value.code == "PORT_TAKEN"
    assert "gateway.statsd_port" in str(told.value)
