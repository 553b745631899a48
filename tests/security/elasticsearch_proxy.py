"""TLS and a login of its own in front of a real Elasticsearch, whose embedded build has no TLS."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.security.certificates import Certificate
from tests.security.serving import served

_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "authorization"})


@dataclass
class Guard:
    """Who is let in; may be changed while it runs.

    Attributes:
        user: The user.
        password: The password.
        api_key: The API key, encoded.
        forbidden: What the account has no privileges for: all requests that name it are refused, and all documents for
            indices whose names begin so, each by itself, as Elasticsearch does it; empty: nothing.
        manages: Whether it may do all else there but write documents.
        url: Where the proxy listens.
        refused: How many requests were refused.
        forwarded: How many requests were passed on.
    """

    user: str
    password: str
    api_key: str
    forbidden: str = ""
    manages: bool = False
    url: str = ""
    refused: int = 0
    forwarded: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def lets_in(self, header: str) -> bool:
        """Whether a header ``Authorization`` is right."""
        basic = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return header in (f"Basic {basic}", f"ApiKey {self.api_key}")


@contextmanager
def guarded_elasticsearch(target: str, certificate: Certificate, guard: Guard) -> Iterator[Guard]:
    """Runs the proxy for the length of a block.

    Args:
        target: URL of the Elasticsearch, with its user and password.
        certificate: The certificate of the proxy.
        guard: Who is let in; its ``url`` is set.
    """
    where = urlsplit(target)
    account = where.netloc.rpartition("@")[0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not guard.lets_in(self.headers.get("Authorization", "")):
                with guard.lock:
                    guard.refused += 1
                reason = "unable to authenticate"
                said = f'{{"error":{{"type":"security_exception","reason":"{reason}"}},"status":401}}'.encode()
                self._answer(401, [("Content-Type", "application/json"), ("X-Elastic-Product", "Elasticsearch")], said)
                return
            reason = f"action is unauthorized for user [{guard.user}] on indices [{guard.forbidden}*]"
            if guard.forbidden and self.path.startswith("/_bulk") and f'"_index":"{guard.forbidden}'.encode() in body:
                refused = {"status": 403, "error": {"type": "security_exception", "reason": reason}}
                items = [{"index": refused} for line in body.splitlines() if line.startswith(b'{"index":')]
                said = json.dumps({"errors": True, "items": items}).encode()
                self._answer(200, [("Content-Type", "application/json"), ("X-Elastic-Product", "Elasticsearch")], said)
                return
            if guard.forbidden and not guard.manages and guard.forbidden in self.path:
                said = f'{{"error":{{"type":"security_exception","reason":"{reason}"}},"status":403}}'.encode()
                self._answer(403, [("Content-Type", "application/json"), ("X-Elastic-Product", "Elasticsearch")], said)
                return
            sent = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            sent["Authorization"] = f"Basic {base64.b64encode(account.encode()).decode()}"
            behind = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
            try:
                behind.request(self.command, self.path, body or None, sent)
                answer = behind.getresponse()
                content = answer.read()
                kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP]
                with guard.lock:
                    guard.forwarded += 1
                self._answer(answer.status, kept, content)
            finally:
                behind.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _any  # noqa: N815  as http.server wants

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request: object, client_address: object) -> None:
            with context.wrap_socket(request, server_side=True) as wrapped:  # type: ignore[arg-type]
                super().finish_request(wrapped, client_address)  # type: ignore[arg-type]

        def handle_error(self, *_: object) -> None:
            pass  # clients that do not like the certificate

    with served(Server(("127.0.0.1", 0), Handler)) as address:
        guard.url = f"https://{address}"
        yield guard
