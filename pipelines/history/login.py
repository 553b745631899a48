"""How a server that has history lets in: options of the command line, which name files of secrets."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from engine.printing import visible
from engine.spec.errors import NewnormalError
from pipelines.contracts.settings.logins.secret_file import pem, secret

_KEYS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")


@dataclass(frozen=True)
class Login:
    """How a server lets in.

    Args:
        token_file: File with a bearer token.
        user: User of basic authentication.
        password_file: File with the password.
        headers: Headers, ``Name: value``; ``Name: @file`` reads the value from a file.
        ca_file: Certificates of the authorities that are trusted, in PEM form.
        certificate_file: Our certificate, for mutual TLS.
        key_file: Its key.
    """

    token_file: str = ""
    user: str = ""
    password_file: str = ""
    headers: tuple[str, ...] = ()
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""

    def header_values(self) -> dict[str, str]:
        """The headers of a request.

        Raises:
            NewnormalError: ``IMPORT_OPTION`` or ``LOGIN_FILE``.
        """
        found: dict[str, str] = {}
        for header in self.headers:
            name, colon, value = header.partition(":")
            value = value.strip()
            if not (colon and name.strip().replace("-", "").isalnum() and name.isascii() and value.isprintable()):
                what = f"{visible(name)[:80]!r} is no header"
                raise option("--header", what, "'Name: value', or 'Name: @file' for a value in a file")
            held = secret(f"--header {name}", SecretStr(""), value[1:]) if value.startswith("@") else value
            found[name.strip()] = held
        if self.token_file:
            found["Authorization"] = f"Bearer {secret('--token', SecretStr(''), self.token_file)}"
        return found

    def basic(self, url: str) -> tuple[str, str] | None:
        """User and password, from the options or the URL.

        Raises:
            NewnormalError: ``IMPORT_OPTION`` if they do not go together; ``LOGIN_FILE``.
        """
        if bool(self.user) != bool(self.password_file):
            raise option("--user", "a user and a password file go together", "both, or neither")
        if self.user and self.token_file:
            raise option("--token-file", "a user and a token are given", "one of them")
        if self.user:
            return self.user, secret("--password", SecretStr(""), self.password_file)
        account = urlsplit(url).netloc.rpartition("@")[0]
        user, _, password = account.partition(":")
        return (unquote(user), unquote(password)) if account else None

    def tls(self) -> ssl.SSLContext:
        """What is trusted.

        Raises:
            NewnormalError: ``LOGIN_FILE`` or ``IMPORT_OPTION``.
        """
        pem("--ca-file", self.ca_file, ("CERTIFICATE",), "a readable file in PEM form")
        context = ssl.create_default_context(cafile=str(Path(self.ca_file).expanduser()) if self.ca_file else None)
        if bool(self.certificate_file) != bool(self.key_file):
            raise option("--certificate-file", "a certificate and its key go together", "both, or neither")
        if self.certificate_file:
            pem("--certificate-file", self.certificate_file, ("CERTIFICATE",), "a readable file in PEM form")
            pem("--key-file", self.key_file, _KEYS, "a readable file in PEM form, without a password")
            try:
                context.load_cert_chain(Path(self.certificate_file).expanduser(), Path(self.key_file).expanduser())
            except (ssl.SSLError, OSError) as error:
                raise option("--key-file", str(error), "the key of the certificate, without a password") from None
        return context


def option(where: str, what: str, accepted: str) -> NewnormalError:
    """The error for an option that cannot be used."""
    return NewnormalError("IMPORT_OPTION", what, where, accepted, "nothing was imported")
