"""The one place that makes clients of Elasticsearch, and says why a server cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.address import client_options
from engine.spec.errors import NewnormalError

if TYPE_CHECKING:
    from elasticsearch import ApiError, Elasticsearch, TransportError

_FORBIDDEN = frozenset({401, 403})


def elasticsearch_client(url: str, **arguments: Any) -> Elasticsearch:
    """A client of Elasticsearch that logs in as the address says.

    Args:
        url: ``http://host:port``; an `engine.address.Address` from the settings if the server wants a login.
        arguments: Further arguments of the client.
    """
    from elasticsearch import Elasticsearch  # noqa: PLC0415  loaded only where a server is asked

    return Elasticsearch(str(url), **client_options(url), **arguments)


def unusable(error: ApiError | TransportError, url: str, now: str) -> NewnormalError:
    """The error for a server that does not let this client in, or does not answer.

    Args:
        error: What the client raised.
        url: The address, for the message.
        now: What happens now.

    Returns:
        ``ELASTICSEARCH_REFUSED``, ``ELASTICSEARCH_TLS_FAILED`` or ``ELASTICSEARCH_UNREACHABLE``.
    """
    from elastic_transport import TlsError  # noqa: PLC0415  as above
    from elasticsearch import ApiError  # noqa: PLC0415  as above

    where, message = "elasticsearch.url", str(error.message or type(error).__name__)
    if isinstance(error, ApiError) and error.status_code in _FORBIDDEN:
        what = f"{str(url)!r} refuses this account (HTTP {error.status_code}): {reason(error)}"
        settings = "elasticsearch.user and elasticsearch.password_file, or elasticsearch.api_key_file"
        accepted = f"an account or API key with the privileges in security.md: {settings}"
        return NewnormalError("ELASTICSEARCH_REFUSED", what, where, accepted, now)
    if isinstance(error, TlsError):
        what = f"no TLS with {str(url)!r}: {message}"
        accepted = "a valid certificate of an authority in elasticsearch.ca_file, for the host in elasticsearch.url"
        return NewnormalError("ELASTICSEARCH_TLS_FAILED", what, where, accepted, now)
    what = f"Elasticsearch at {str(url)!r} cannot be used: {message}"
    accepted = "http://host:port of a running node; empty to use the embedded one"
    return NewnormalError("ELASTICSEARCH_UNREACHABLE", what, where, accepted, now)


def reason(error: ApiError) -> str:
    """The reason that the server gave, without the rest of its answer."""
    told = error.body.get("error", {}) if isinstance(error.body, dict) else {}
    why = told.get("reason") if isinstance(told, dict) else told
    return str(why or error.message)[:300]
