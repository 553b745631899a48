"""An OAuth 2.0 server that hands out tokens to clients who know their secret."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def token(subject: str, seconds: int = 3_600) -> str:
    """A token for a user, which is not signed: brokers without a validator of their own take such tokens."""
    now = int(time.time())
    parts: list[dict[str, Any]] = [
        {"alg": "none"},
        {"sub": subject, "iat": now, "exp": now + seconds, "scope": "kafka"},
    ]
    return ".".join(_encoded(json.dumps(part).encode()) for part in parts) + "."


@dataclass
class TokenServer:
    """Where it listens, and how many tokens it has given and refused."""

    url: str
    given: int = 0
    refused: int = 0


@contextmanager
def token_server(client: str, word: str) -> Iterator[TokenServer]:
    """Runs the server for the length of a block; it gives tokens to one client, with the client's name as user."""
    wanted = f"Basic {base64.b64encode(f'{client}:{word}'.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def _post(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fine = self.headers.get("Authorization") == wanted
            told.given, told.refused = told.given + fine, told.refused + (not fine)
            answer = {"error": "invalid_client"}
            if fine:
                answer = {"access_token": token(client), "token_type": "bearer", "expires_in": "3600"}
            content = json.dumps(answer).encode()
            self.send_response(200 if fine else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = _post  # noqa: N815  as http.server wants

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told = TokenServer(f"http://127.0.0.1:{server.server_address[1]}/token")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
