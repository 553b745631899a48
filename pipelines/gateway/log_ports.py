"""The ports of log lines that the settings open: syslog over UDP, TCP and TLS, and GELF over UDP and TCP."""

from __future__ import annotations

import ssl
from contextlib import suppress

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings import Settings
from pipelines.contracts.settings.gateway import GatewaySettings
from pipelines.gateway.log_port import GELF, SYSLOG, LogPort
from pipelines.gateway.metrics import Metrics
from pipelines.gateway.ports import sockets
from pipelines.gateway.writer import Writer


def opened(settings: Settings, writer: Writer, metrics: Metrics) -> list[LogPort]:
    """The open ports.

    Args:
        settings: Their numbers, and files for TLS.
        writer: Writes to Kafka.
        metrics: Where they count.

    Raises:
        NewnormalError: ``PORT_TAKEN``, ``GATEWAY_TLS``.
    """
    limits, ports = settings.gateway, list[LogPort]()
    try:
        for kind, port in ((SYSLOG, limits.syslog_port), (GELF, limits.gelf_port)):
            if port:
                tcp, udp = sockets(limits.host, port, kind.name, f"gateway.{kind.name}_port")
                ports.append(LogPort(kind, settings, writer, metrics, tcp, udp))
        if limits.syslog_tls_port:
            tls = _tls(limits)
            tcp, udp = sockets(limits.host, limits.syslog_tls_port, "syslog over TLS", "gateway.syslog_tls_port")
            udp.close()
            ports.append(LogPort(SYSLOG, settings, writer, metrics, tcp, tls=tls))
    except NewnormalError:
        for each in ports:
            each.close()
        raise
    return ports


def _tls(limits: GatewaySettings) -> ssl.SSLContext:
    """What encrypts connections: TLS 1.2 or newer; clients need a certificate if the settings name an authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    what = f"{limits.tls_certificate or 'no certificate'}, {limits.tls_key or 'no key'}"
    with suppress(OSError):
        context.load_cert_chain(limits.tls_certificate, limits.tls_key or None)
        if limits.tls_clients:
            what = limits.tls_clients
            context.load_verify_locations(limits.tls_clients)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
    names = "gateway.tls_certificate, gateway.tls_key, gateway.tls_clients"
    accepted = "files (PEM) with the gateway's certificate and its key, and with the authority of its clients"
    raise NewnormalError("GATEWAY_TLS", f"cannot be used: {what}", names, accepted, "nothing was started")
