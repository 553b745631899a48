"""Credentials for Kibana and Grafana, from a file or the environment: never from the command line, which others see."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings.logins.secret_file import line_of


def account(file: Path | None) -> tuple[str, str] | None:
    """The user and password in a file; ``None`` without one.

    Raises:
        NewnormalError: ``DASHBOARD_CREDENTIALS_INVALID`` if there is no such file, or something else in it.
    """
    if file is None:
        return None
    user, _, password = _line("", file).partition(":")
    if not user or not password:
        raise _refused(str(file), "user:password, in one line")
    return user, password


def authorization(variable: str, file: Path | None, keyword: str) -> dict[str, str]:
    """The header that says who asks; empty if nothing says so.

    Args:
        variable: Environment variable with ``user:password`` or a key.
        file: A file with the same, which takes precedence.
        keyword: What the server wants before a key: ``ApiKey`` or ``Bearer``.

    Raises:
        NewnormalError: ``DASHBOARD_CREDENTIALS_INVALID`` if there is no such file, or no text of one line in it.
    """
    secret = _line(variable, file)
    if ":" in secret:
        return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
    return {"Authorization": f"{keyword} {secret}"} if secret else {}


def _line(variable: str, file: Path | None) -> str:
    """The line in a file, or in a variable of the environment."""
    secret = line_of(str(file))[0] if file else os.environ.get(variable, "").strip()
    if not secret.isprintable() or not secret.isascii() or (file and not secret):
        raise _refused(str(file or variable), "user:password or a key, in one line")
    return secret


def _refused(where: str, accepted: str) -> NewnormalError:
    what = "the credentials are no such line of text"
    return NewnormalError("DASHBOARD_CREDENTIALS_INVALID", what, where, accepted, "nothing was done")
