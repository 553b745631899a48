"""Who may push: who knows the token, and no web page."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from http import HTTPStatus

from pipelines.contracts.setting_types import is_loopback
from pipelines.gateway.protocol import NotTakenError
from pipelines.serving.hosts import allowed
from pipelines.serving.tokens import has_token, same

NO_TOKEN = "the request has no token"
_SCHEMES = ("bearer", "token", "splunk")
_HEADERS = ("dd-api-key", "x-amz-firehose-access-key")
"""Headers that hold the token alone, as Datadog's agent and Amazon Data Firehose send it."""


class Access:
    """Decides who is answered.

    Args:
        reached: The address that decides who reaches the gateway.
        token: What senders must know; empty: there is none, so only senders of this machine are answered.
    """

    def __init__(self, reached: str, token: str) -> None:
        self._token, self._needed = token, bool(token) or not is_loopback(reached)

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Refuses who may be a web page that a name has led here; where there is a token, no page knows it.

        Raises:
            NotTakenError: ``GATEWAY_BROWSER``.
        """
        if not self._needed and not allowed(headers.get("host", "")):
            what, accepted = "the request names another host", "localhost, or gateway.token_file"
            now = "nothing was told"
            raise NotTakenError("GATEWAY_BROWSER", what, "Host header", accepted, now, status=HTTPStatus.FORBIDDEN)

    def check(self, headers: Mapping[str, str]) -> None:
        """Lets a request pass.

        Args:
            headers: The headers of the request.

        Raises:
            NotTakenError: ``GATEWAY_UNAUTHORIZED``, ``GATEWAY_BROWSER``.
        """
        if "origin" in headers:  # browsers send it with each POST; a page must not write through its reader's browser
            what, accepted = "the request comes from a web page", "requests of agents, without Origin"
            raise NotTakenError("GATEWAY_BROWSER", what, "Origin header", accepted, status=HTTPStatus.FORBIDDEN)
        authorization, alone = headers.get("authorization", ""), [headers[name] for name in _HEADERS if name in headers]
        known = bool(self._token) and (
            has_token(authorization, self._token, _SCHEMES)
            or any(same(given, self._token) for given in (*alone, _password(authorization)))
        )
        if self._needed and not known:
            raise NotTakenError(
                "GATEWAY_UNAUTHORIZED",
                "the token is another one" if authorization or alone else NO_TOKEN,
                "Authorization header",
                "Authorization: Bearer TOKEN, or Token TOKEN",
                status=HTTPStatus.UNAUTHORIZED,
            )


def _password(authorization: str) -> str:
    """The password of a header ``Authorization`` of the scheme Basic, as whose Splunk's senders may give the token.

    >>> _password("Basic eDphYmM="), _password("Basic ?"), _password("Bearer eDphYmM=")
    ('abc', '', '')
    """
    scheme, _, given = authorization.partition(" ")
    try:
        user_and_password = base64.b64decode(given, validate=True).decode() if scheme.lower() == "basic" else ""
    except ValueError:
        return ""
    return user_and_password.partition(":")[2]
