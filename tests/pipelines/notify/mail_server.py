"""A real mail server on loopback (aiosmtpd), with accounts, STARTTLS and TLS; and certificates for it (trustme)."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Literal

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER = "newnormal"


def certificate(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    """What a server shows that an authority has certified under a name."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return context


class MailServer:
    """A mail server; also the handler that aiosmtpd calls.

    Args:
        security: How it encrypts.
        context: Its certificate; not needed without encryption.
        password: The password of the account `USER`, without which no mail is taken; ``None``: it has no accounts.

    Attributes:
        got: Recipients and mail of each that was taken.
        raw: The bytes of each mail.
        encrypted: For each mail whether it came over TLS.
        tried: The user names and passwords that it was told.
        recipient: The answer to each recipient.
        refused: Another answer to some of them.
        wrong: The answer to a wrong password.
        address: Where it listens.
    """

    def __init__(
        self, security: Literal["starttls", "tls", "none"], context: ssl.SSLContext | None, password: str | None
    ) -> None:
        self._security, self._context, self.password = security, context, password
        self.got: list[tuple[list[str], EmailMessage]] = []
        self.encrypted: list[bool] = []
        self.raw: list[bytes] = []
        self.tried: list[tuple[str, str]] = []
        self.recipient, self.wrong = "250 fine", "535 5.7.8 wrong user or password"
        self.refused: dict[str, str] = {}
        self.address = ""

    async def serve(self, ready: threading.Event, over: asyncio.Event) -> None:
        """Serves until an event is set."""
        implicit = self._context if self._security == "tls" else None
        server = await asyncio.get_running_loop().create_server(self._session, "127.0.0.1", 0, ssl=implicit)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await over.wait()
        server.close()

    async def handle_RCPT(  # noqa: N802  aiosmtpd names it
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _: Any
    ) -> str:
        answer = self.refused.get(address, self.recipient)
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802  the same
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        self.raw.append(envelope.content)
        self.encrypted.append(server.transport.get_extra_info("cipher") is not None)
        self.got.append((list(envelope.rcpt_tos), mail))  # type: ignore[arg-type]
        return "250 taken"

    def _session(self) -> SMTP:
        return SMTP(
            self,
            tls_context=self._context if self._security == "starttls" else None,
            authenticator=self._authenticate,
            auth_required=self.password is not None,
            auth_require_tls=self._security == "starttls",
        )

    def _authenticate(self, _server: SMTP, _session: Session, _envelope: Envelope, _how: str, given: Any) -> AuthResult:
        assert isinstance(given, LoginPassword)
        user, password = given.login.decode(), given.password.decode()
        self.tried.append((user, password))
        if (user, password) == (USER, self.password):
            return AuthResult(success=True)
        return AuthResult(success=False, handled=False, message=self.wrong)


@contextmanager
def mail_server(
    security: Literal["starttls", "tls", "none"] = "none",
    context: ssl.SSLContext | None = None,
    password: str | None = None,
) -> Iterator[MailServer]:
    """A mail server that runs in a thread; see `MailServer`."""
    loop, ready, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    server = MailServer(security, context, password)
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(ready, over),), daemon=True)
    thread.start()
    try:
        assert ready.wait(30)
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()
