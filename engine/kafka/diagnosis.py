"""An admin client of Kafka that says why a broker cannot be used; librdkafka's calls end with "timed out" only."""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from engine.address import kafka_options
from engine.spec.errors import NewnormalError

_SLICE_SECONDS = 1.0
_CERTAIN = 3
"""A broker that ends during a handshake looks like one that refuses TLS; so the error must have come so many times."""
_NO_TOKEN = "OAUTHBEARER token"
_OF_TLS = ("SSL routines", "PLAINTEXT broker listener", "SSL listener")
"""Parts of errors of connections, by which librdkafka says that one side does not use TLS or refuses a certificate."""
_TLS_WANTED = (
    "a valid certificate of an authority in kafka.ssl_ca_file, for the host in kafka.bootstrap; if the broker asks for "
    "one of ours, kafka.ssl_certificate_file; the kafka.security_protocol of that port"
)
_LOGIN_WANTED = "a user, a password and a mechanism that the broker knows (kafka.sasl_*)"
_TOKEN_WANTED = (
    "a client and a secret that kafka.oauth_token_url knows (kafka.oauth_*), and a broker that takes its tokens"
)
_FORBIDDEN = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_SECONDS = 3.0


class _Errors:
    """The errors of the connections of one client. It does not know the client, which so ends with its last use."""

    def __init__(self) -> None:
        self.latest, self.encryption, self.login = "", list[str](), ""

    def __call__(self, error: KafkaError) -> None:
        """Takes an error from librdkafka."""
        reason = _reason(error.str())
        if error.code() == KafkaError._AUTHENTICATION:
            self.login = error.str() if _NO_TOKEN in error.str() else reason
        elif error.code() == KafkaError._SSL or any(sign in reason for sign in _OF_TLS):
            self.encryption = [*self.encryption[-_CERTAIN:], reason]
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.latest = reason


class DiagnosingClient(AdminClient):
    """An admin client that logs nothing, and keeps the latest errors of its connections.

    Args:
        bootstrap: ``host:port`` of a broker.
    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self._errors = bootstrap, _Errors()
        options: dict[str, Any] = {**kafka_options(bootstrap), "log_level": 0, "error_cb": self._errors}
        super().__init__(options)

    def latest(self) -> str:
        """The latest error of a connection, in librdkafka's words; empty if there was none."""
        self.poll(0)
        return self._errors.latest

    def refusal(self, now: str = "nothing was started") -> NewnormalError | None:
        """Why the broker does not let this client in: ``KAFKA_LOGIN_REFUSED`` or ``KAFKA_TLS_FAILED``.

        Args:
            now: What happens now, for the message.

        Returns:
            ``None`` if it has let it in, or has not answered at all.
        """
        self.poll(0)
        where = "kafka.bootstrap"
        if self._errors.login:
            what = f"{self.bootstrap} refuses the login: {self._errors.login}"
            token = kafka_options(self.bootstrap).get("sasl.mechanism") == "OAUTHBEARER"
            accepted = _TOKEN_WANTED if token else _LOGIN_WANTED
            return NewnormalError("KAFKA_LOGIN_REFUSED", what, where, accepted, now)
        if len(self._errors.encryption) >= _CERTAIN:
            certificate = certificate_problem(self.bootstrap, kafka_options(self.bootstrap))
            what = certificate or f"no encrypted connection with {self.bootstrap}: {self._errors.encryption[-1]}"
            return NewnormalError("KAFKA_TLS_FAILED", what, where, _TLS_WANTED, now)
        return None


def problem(bootstrap: str, timeout: float, now: str = "nothing was started") -> NewnormalError | None:
    """Why a Kafka cluster cannot be used; ``None`` if it answers.

    Args:
        bootstrap: ``host:port`` of a broker.
        timeout: Longest time for an answer, seconds; a refused login is reported earlier.
        now: What happens now, for the message.

    Returns:
        ``KAFKA_LOGIN_REFUSED``, ``KAFKA_TLS_FAILED`` or ``KAFKA_UNREACHABLE``.
    """
    client, deadline = DiagnosingClient(bootstrap), time.monotonic() + timeout
    while True:
        try:
            if client.list_topics(timeout=max(0.1, min(_SLICE_SECONDS, deadline - time.monotonic()))).brokers:
                return None
        except KafkaException:
            pass
        if refused := client.refusal(now):
            return refused
        if time.monotonic() >= deadline:
            if speaks_tls(bootstrap) and not kafka_options(bootstrap).get("security.protocol", "").endswith("SSL"):
                what = f"{bootstrap} speaks TLS, but kafka.security_protocol does not"
                return NewnormalError("KAFKA_TLS_FAILED", what, "kafka.security_protocol", _TLS_WANTED, now)
            latest = client.latest()
            what = f"no Kafka broker answers at {str(bootstrap)!r} within {timeout:.0f} s"
            accepted = "host:port of a running broker; empty to use the embedded one"
            return NewnormalError(
                "KAFKA_UNREACHABLE", f"{what}: {latest}" if latest else what, "kafka.bootstrap", accepted, now
            )


def forbidden(error: KafkaError, action: str, where: str, now: str) -> NewnormalError | None:
    """``KAFKA_NOT_ALLOWED`` for an error that says so; ``None`` for any other error.

    Args:
        error: The error.
        action: The action that needs an ACL, e.g. ``to create the topic x``.
        where: The topic or group, or the address of Kafka.
        now: What happens now.
    """
    if error.code() not in _FORBIDDEN:
        return None
    accepted = "an ACL that allows it; `newnormal acls` lists those that are needed"
    return NewnormalError(
        "KAFKA_NOT_ALLOWED", f"Kafka does not allow this user {action}: {error.str()}", where, accepted, now
    )


def _reason(message: str) -> str:
    """An error of librdkafka without the name of its connection and its timing."""
    return message.partition(": ")[2].partition(" (after ")[0] or message


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
