"""The login at the embedded Elasticsearch: a generated password in a file that its owner alone can read.

Without it any web page that a browser of this machine shows could close or delete indices, as a page may send requests
to 127.0.0.1, and a name that it chooses itself may lead there. A page does not know the password.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from engine.address import Address
from engine.spec.errors import NewnormalError

USER = "elastic"
"""The only user; it may do everything."""
FILE = "elasticsearch.password"
"""Name of the file of the password in the state directory."""

# The password has 192 random bits, so that many rounds would only take time.
_ROUNDS = 1_000
_BYTES = 32


def generate(file: Path) -> Path:
    """Makes sure that there is a password in ``file``; one that is there already stays, also if two come at once.

    Raises:
        OSError: It cannot be written.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}")
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as written:
            written.write(f"{secrets.token_urlsafe(24)}\n")
        with suppress(FileExistsError):
            os.link(part, file)  # in one step, and never in the place of another one
        part.unlink()
    return file


def address(url: str, file: str) -> str:
    """The address of a node whose password stands in ``file``; an empty ``file`` stands for a node without a login.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if the file cannot be read.
    """
    return Address(url, {"basic_auth": (USER, password(file))}) if file else url


def password(file: str) -> str:
    """The password in a file.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if there is none.
    """
    from pipelines.contracts.settings.logins.secret_file import line_of  # noqa: PLC0415  not for the supervisor

    word, wrong = line_of(file)
    if word:
        return word
    accepted = "a password in one line; deleted, the next start of the embedded servers generates one"
    raise NewnormalError("LOGIN_FILE", wrong, file, accepted, "nothing was started")


def users(word: str) -> str:
    """The content of Elasticsearch's file ``users`` for a password; it holds only a salted hash of it.

    >>> users("a word").startswith("elastic:{PBKDF2}1000$")
    True
    """
    salt = os.urandom(_BYTES)
    hashed = hashlib.pbkdf2_hmac("sha512", word.encode(), salt, _ROUNDS, _BYTES)
    return f"{USER}:{{PBKDF2}}{_ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(hashed).decode()}\n"
