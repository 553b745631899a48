"""Says why a broker's certificate is not accepted, since librdkafka only tells that it is not."""

from __future__ import annotations

import socket
import ssl
from typing import Any

_SECONDS = 3.0


def certificate_problem(address: str, options: dict[str, Any], timeout: float = _SECONDS) -> str:
    """What is wrong with the certificate of the first broker of an address; empty if nothing is, or nobody answers.

    Args:
        address: ``host:port``, several with commas between them.
        options: Options of librdkafka; ``ssl.ca.location`` says which authorities are trusted.
        timeout: Seconds to wait for the broker.
    """
    host, _, port = address.partition(",")[0].rpartition(":")
    host = host.strip("[]")
    try:
        context = ssl.create_default_context(cafile=options.get("ssl.ca.location"))
        with socket.create_connection((host, int(port)), timeout) as plain:
            context.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        return f"the certificate of {host}:{port} is not accepted: {error.verify_message}"
    except ssl.SSLError as error:
        if "WRONG_VERSION" in str(error) or "RECORD_LAYER" in str(error):
            return f"{host}:{port} does not speak TLS"
        return ""
    except (OSError, ValueError):
        return ""
    return ""
