"""Who may use the console: who knows its token, or whom a trusted proxy names.

A console that only this machine reaches, and that has no token, answers everybody there.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from engine.spec.errors import NewnormalError
from pipelines.contracts.setting_types import is_loopback
from pipelines.serving.tokens import has_token, same

COOKIE = "newnormal_console"
"""Name of the cookie, before the port: browsers do not tell cookies of several ports of a machine apart."""

_MONTH_SECONDS = 30 * 86_400
_OPEN = ("/health", "/login")
_CODE_OF_THE_PAGE = "/page/"


class Access:
    """Decides who is answered.

    Args:
        listening: The address that the console listens on.
        token: What users must know; empty: there is no token.
        user_header: The header in which a proxy names the operator who has logged in; empty: there is no such proxy.
        proxies: Addresses and networks of the proxies whose header is believed.

    Attributes:
        needed: True if not everybody is answered.
        header: ``user_header``.
    """

    def __init__(
        self, listening: str, token: str = "", user_header: str = "", proxies: Collection[str] = ("127.0.0.1", "::1")
    ) -> None:
        self.needed = bool(token) or not is_loopback(listening)
        self._token, self.header = token, user_header
        self._proxies = [ipaddress.ip_network(each) for each in proxies if each]

    def user(self, request: Request) -> str:
        """The name of the operator whom a trusted proxy names; empty if none does."""
        named = request.headers.get(self.header, "").strip()[:200] if self.header else ""
        return named if named and self._from_proxy(request) else ""

    def knows(self, request: Request) -> bool:
        """Whether the request has the token, or the cookie of a browser that has sent it."""
        if not self._token:
            return False
        if has_token(request.headers.get("authorization", ""), self._token):
            return True
        return same(request.cookies.get(cookie_name(request), ""), self._session())

    def admits(self, request: Request) -> bool:
        """Whether the request is answered."""
        path = request.url.path
        if not self.needed or path in _OPEN or path.startswith(_CODE_OF_THE_PAGE):
            return True
        return self.knows(request) or bool(self.user(request))

    def refusal(self) -> NewnormalError:
        """What others are told."""
        ways = ["a request with the token of the console"] if self._token else []
        ways += [f"a request through the proxy, with {self.header}"] if self.header else []
        accepted = ", or ".join(ways) or "nobody, until console.token_file or console.user_header is set"
        return NewnormalError("LOGIN_REQUIRED", "the console does not know who asks", "console", accepted)

    def log_in(self, token: str, request: Request, response: Response, *, secure: bool) -> None:
        """Gives a browser that sends the token a cookie; the cookie is not the token, and ends with it.

        Args:
            token: What the user has typed.
            request: The request in which it came.
            response: Gets the cookie.
            secure: True if the request came over HTTPS.

        Raises:
            NewnormalError: ``TOKEN_WRONG``.
        """
        if not (self._token and same(token.strip(), self._token)):
            raise NewnormalError("TOKEN_WRONG", "this is not the token", "console", "the token of console.token_file")
        response.set_cookie(
            cookie_name(request),
            self._session(),
            max_age=_MONTH_SECONDS,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def _session(self) -> str:
        return hmac.new(self._token.encode(), b"session of the newnormal console", "sha256").hexdigest()

    def _from_proxy(self, request: Request) -> bool:
        try:
            peer = ipaddress.ip_address(request.client.host if request.client else "")
        except ValueError:
            return False
        return any(peer in network for network in self._proxies)


def cookie_name(request: Request) -> str:
    """The cookie's name for the port that the browser names; two consoles of a machine do not log each other out."""
    try:
        port = request.url.port
    except ValueError:
        port = None
    return f"{COOKIE}_{port}" if port else COOKIE


class _Login(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    token: Annotated[str, Field(max_length=1_000)]


def login_routes(access: Access) -> APIRouter:
    """The path ``/login``.

    Args:
        access: Decides who is answered.
    """
    routes = APIRouter()

    @routes.post("/login")
    def login(credentials: _Login, request: Request, response: Response) -> dict[str, bool]:
        access.log_in(credentials.token, request, response, secure=_over_tls(request))
        return {"known": True}

    return routes


def _over_tls(request: Request) -> bool:
    """Whether the browser speaks HTTPS, to a proxy if not to the console; `own_page` has compared the origin's host."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
