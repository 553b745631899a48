"""Syslog over UDP, TCP and TLS, and GELF, are in Kafka as lines of their machines when the gateway has ended."""

from __future__ import annotations

import datetime
import ipaddress
import json
import shutil
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from engine.spec.errors import NewnormalError
from pipelines.contracts.records import Log
from pipelines.contracts.settings import Settings, load
from pipelines.gateway.limits import InFlight
from pipelines.gateway.log_port import opened
from pipelines.gateway.metrics import Metrics
from pipelines.gateway.serving import Gateway
from pipelines.gateway.writer import Writer
from tests.pipelines.gateway.broker import Broker, read
from tests.pipelines.gateway.test_framing import chunks, counted
from tests.pipelines.gateway.test_statsd_port import free_port

NOW = datetime.datetime.now(datetime.UTC)
STAMP = NOW.strftime("%b %e %H:%M:%S")


def own(broker: Broker, **ports: Any) -> Settings:
    settings = broker.named(uuid4().hex[:8])
    return settings.model_copy(update={"gateway": settings.gateway.model_copy(update=ports)})


def lines(settings: Settings) -> list[tuple[str, str, int, str]]:
    return sorted((r["entity"], r["program"], r["severity"], r["message"]) for r in read(settings, Log))


@contextmanager
def serving(settings: Settings) -> Iterator[Gateway]:
    gateway = Gateway(settings)
    try:
        yield gateway
    finally:
        gateway.close()


def send(connection: socket.socket, *parts: bytes) -> None:
    """Sends parts, and returns when the gateway has read all and ends the connection."""
    for part in parts:
        connection.sendall(part)
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""


def test_messages_over_udp_and_tcp_become_lines_and_name_the_sender_where_they_name_no_machine(broker: Broker) -> None:
    settings = own(broker, syslog_port=free_port())
    at = ("127.0.0.1", settings.gateway.syslog_port)
    with serving(settings) as gateway:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.sendto(f"<34>1 {NOW.isoformat()} web-1 su 7 - - one".encode(), at)
            udp.sendto(b"<34>1 - - su 7 - - two", at)
            udp.sendto(b"broken", at)
        with socket.create_connection(at) as tcp:
            counted_one = counted(f"<34>{STAMP} web-2 su[7]: three".encode())
            send(
                tcp, counted_one[:9], counted_one[9:] + b"<34>1 - web-3 su - - - fo", b"ur\n<34>1 - web-3 su - - - five"
            )
        page = wait_for(gateway, b'newnormal_gateway_refused_total{code="LINE_INVALID",protocol="syslog"} 1.0')
        assert b'newnormal_gateway_records_total{protocol="syslog"} 5.0' in page
    assert lines(settings) == [
        ("127.0.0.1", "su", 2, "two"),
        ("web-1", "su", 2, "one"),
        ("web-2", "su", 2, "three"),
        ("web-3", "su", 2, "five"),
        ("web-3", "su", 2, "four"),
    ]


def wait_for(gateway: Gateway, text: bytes) -> bytes:
    """The page of metrics as soon as it has a text."""
    until = time.monotonic() + 20
    while text not in (page := gateway.metrics.page()):
        assert time.monotonic() < until, page.decode()
        time.sleep(0.05)
    return page


def test_gelf_over_udp_and_tcp_becomes_lines(broker: Broker) -> None:
    settings = own(broker, gelf_port=free_port())
    at = ("127.0.0.1", settings.gateway.gelf_port)

    def message(text: str, **more: Any) -> bytes:
        return json.dumps({"version": "1.1", "host": "web-1", "short_message": text, "level": 3, **more}).encode()

    with serving(settings) as gateway:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.sendto(message("plain", _app="shop"), at)
            udp.sendto(zlib.compress(message("packed", host="")), at)
            for chunk in reversed(chunks(message("in chunks"), 40)):
                udp.sendto(chunk, at)
        with socket.create_connection(at) as tcp:
            send(tcp, message("first") + b"\0" + message("sec")[:9], message("sec")[9:] + b"\0")
        wait_for(gateway, b'newnormal_gateway_records_total{protocol="gelf"} 5.0')
    assert lines(settings) == [
        ("127.0.0.1", "-", 3, "packed"),
        *(("web-1", "-", 3, text) for text in ("first", "in chunks", "sec")),
        ("web-1", "shop", 3, "plain"),
    ]


def certificate(folder: Path, name: str, signed_by: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    issuer, by = (signed_by[0].subject, signed_by[1]) if signed_by else (subject, key)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(NOW - datetime.timedelta(days=1)).not_valid_after(NOW + datetime.timedelta(days=1))
    made = made.add_extension(names, critical=False).add_extension(x509.BasicConstraints(not signed_by, None), True)
    whole = made.sign(by, hashes.SHA256())
    (folder / f"{name}.crt").write_bytes(whole.public_bytes(serialization.Encoding.PEM))
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / f"{name}.key").write_bytes(key.private_bytes(*form))
    return whole, key


def test_syslog_over_tls_is_taken_from_clients_with_a_certificate_alone(broker: Broker, tmp_path: Path) -> None:
    authority = certificate(tmp_path, "authority")
    for name in ("gateway", "client"):
        certificate(tmp_path, name, authority)
    files = {"tls_certificate": f"{tmp_path}/gateway.crt", "tls_key": f"{tmp_path}/gateway.key"}
    settings = own(broker, syslog_tls_port=free_port(), tls_clients=f"{tmp_path}/authority.crt", **files)
    at = ("127.0.0.1", settings.gateway.syslog_tls_port)
    with serving(settings) as gateway:
        context = ssl.create_default_context(cafile=tmp_path / "authority.crt")
        with socket.create_connection(at) as plain, suppress(OSError):
            plain.sendall(b"<34>1 - web-1 su - - - plain\n")
            plain.settimeout(5)
            plain.recv(10)
        with (
            suppress(OSError),
            context.wrap_socket(socket.create_connection(at), server_hostname="127.0.0.1") as strange,
        ):
            strange.sendall(counted(b"<34>1 - web-1 su - - - stranger"))
            strange.recv(1)
        context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
        with context.wrap_socket(socket.create_connection(at), server_hostname="127.0.0.1") as known:
            known.sendall(counted(b"<34>1 - web-1 su - - - known"))
        wait_for(gateway, b'newnormal_gateway_records_total{protocol="syslog"} 1.0')
    assert lines(settings) == [("web-1", "su", 2, "known")]


@pytest.mark.parametrize(
    ("ports", "code"), [({"syslog_tls_port": 1}, "GATEWAY_TLS"), ({"syslog_port": 1}, "PORT_TAKEN")]
)
def test_a_port_that_cannot_be_opened_is_told_when_the_gateway_starts(ports: dict[str, int], code: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings = load(**{f"gateway.{name}": other.getsockname()[1] for name in ports})
        writer = Writer("127.0.0.1:9", 50, 10**6)
        with pytest.raises(NewnormalError) as told:
            opened(settings, writer, Metrics(InFlight(1)))
        writer.close()
    assert told.value.code == code


@pytest.mark.skipif(shutil.which("rsyslogd") is None, reason="rsyslog is not installed")
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_what_a_real_rsyslog_forwards_is_read_whole(broker: Broker, tmp_path: Path, transport: str) -> None:
    settings = own(broker, syslog_port=free_port())
    port, path = settings.gateway.syslog_port, tmp_path / "in"
    framing = ' TCP_Framing="octet-counted"' if transport == "tcp" else ""
    configuration = tmp_path / "rsyslog.conf"
    configuration.write_text(
        f'global(workDirectory="{tmp_path}")\nmodule(load="imuxsock" SysSock.Use="off")\n'
        f'input(type="imuxsock" Socket="{path}" CreatePath="on")\n'
        f'*.* action(type="omfwd" target="127.0.0.1" port="{port}" protocol="{transport}"{framing}'
        ' template="RSYSLOG_SyslogProtocol23Format")\n'
    )
    with serving(settings) as gateway:
        command = ["rsyslogd", "-n", "-f", str(configuration), "-i", str(tmp_path / "pid")]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 20
            while not path.exists():
                assert time.monotonic() < until
                time.sleep(0.05)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.connect(str(path))
                for number in range(20):
                    sender.send(f"<34>{STAMP} su[7]: grün {number}".encode())
            wait_for(gateway, b'newnormal_gateway_records_total{protocol="syslog"} 2')
            time.sleep(0.5)
        finally:
            running.terminate()
            running.wait()
    mine = [line for line in lines(settings) if line[1] == "su"]
    assert sorted(text for *_, text in mine) == sorted(f"grün {number}" for number in range(20))
    assert {(program, severity) for _, program, severity, _ in mine} == {("su", 2)}
