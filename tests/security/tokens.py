"""An identity provider for tests: gives OAuth 2.0 tokens for a client's id and secret, signed as a broker can check."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from tests.security.serving import served

_LIFE_SECONDS = 600


class Signer:
    """Signs tokens (RFC 7519, RS256).

    Args:
        keys: File that is written, with the public key as a broker reads it (RFC 7517).
    """

    def __init__(self, keys: Path) -> None:
        self.keys, self._key = keys, rsa.generate_private_key(65537, 2048)
        public = self._key.public_key().public_numbers()
        known = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "tests"}
        known |= {name: _encoded(value.to_bytes(-(-value.bit_length() // 8))) for name, value in _parts(public)}
        keys.parent.mkdir(parents=True, exist_ok=True)
        keys.write_text(json.dumps({"keys": [known]}))

    def token(self, subject: str, scope: str, until: float) -> str:
        """A token that says who the client is, and until when that is true (epoch seconds)."""
        claims = {"sub": subject, "scope": scope, "iss": "tests", "iat": int(time.time()) - 1, "exp": int(until)}
        header = {"alg": "RS256", "typ": "JWT", "kid": "tests"}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
        return f"{signed}.{_encoded(self._key.sign(signed.encode(), PKCS1v15(), SHA256()))}"


def _parts(public: rsa.RSAPublicNumbers) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("n", public.n), ("e", public.e)


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Provider:
    """Who gets tokens; may be changed while it runs.

    Attributes:
        signer: Signs the tokens; another signer than that of the broker gives tokens that the broker refuses.
        client: The id of the client, which becomes the user.
        secret: Its secret.
        url: Where tokens are given.
        scopes: The scopes that were asked for, one for each token that was given.
        refused: How many requests were refused.
    """

    signer: Signer
    client: str
    secret: str
    url: str = ""
    scopes: list[str] = field(default_factory=list)
    refused: int = 0

    def lets_in(self, header: str) -> bool:
        """Whether a header ``Authorization`` is right."""
        return header == "Basic " + base64.b64encode(f"{self.client}:{self.secret}".encode()).decode()


@contextmanager
def token_server(provider: Provider) -> Iterator[Provider]:
    """Runs the provider for the length of a block; its ``url`` is set."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = parse_qs(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
            grant = asked.get("grant_type") == ["client_credentials"]
            if not grant or not provider.lets_in(self.headers.get("Authorization", "")):
                provider.refused += 1
                self._answer(401, {"error": "invalid_client", "error_description": "unknown client or wrong secret"})
                return
            scope = asked.get("scope", [""])[0]
            provider.scopes.append(scope)
            token = provider.signer.token(provider.client, scope, time.time() + _LIFE_SECONDS)
            self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": _LIFE_SECONDS})

        def _answer(self, status: int, fields: dict[str, object]) -> None:
            content = json.dumps(fields).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as address:
        provider.url = f"http://{address}/token"
        yield provider
