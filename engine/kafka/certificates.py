"""Says why a broker's certificate is not accepted, since librdkafka only says that it is not."""

from __future__ import annotations

import socket
import ssl
from typing import Any

_SECONDS = 3.0


def certificate_problem(address: str, options: dict[str, Any], timeout: float = _SECONDS) -> str:
    """What is wrong with the certificate of the first broker of an address; empty if nothing is, or nobody answers.

    Args:
        address: ``host:port``, several with commas between them.
        options: Options of librdkafka; ``ssl.ca.pem`` says which authorities are trusted.
        timeout: Seconds to wait for the broker.
    """
    try:
        _greet(address, ssl.create_default_context(cadata=options.get("ssl.ca.pem")), timeout)
    except ssl.SSLCertVerificationError as error:
        return f"the certificate of {_first(address)} is not accepted: {error.verify_message}"
    except (OSError, ValueError):  # an SSLError is an OSError
        return ""
    return ""


def speaks_tls(address: str, timeout: float = _SECONDS) -> bool:
    """Whether the first broker of an address answers with TLS, whatever its certificate."""
    context = ssl.SSLContext(
        ssl.PROTOCOL_TLS_CLIENT
    )  # without the authorities of this machine, which take long to read
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        _greet(address, context, timeout)
    except (OSError, ValueError):
        return False
    return True


def _first(address: str) -> str:
    return address.partition(",")[0]


def _greet(address: str, context: ssl.SSLContext, timeout: float) -> None:
    host, _, port = _first(address).rpartition(":")
    host = host.strip("[]")
    with socket.create_connection((host, int(port)), timeout) as plain:
        context.wrap_socket(plain, server_hostname=host).close()
