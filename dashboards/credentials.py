"""Credentials for Kibana and Grafana, from a file or the environment: never from the command line, which others see."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from engine.spec.errors import NewnormalError


def authorization(variable: str, file: Path | None, keyword: str) -> dict[str, str]:
    """The header that says who asks; empty if nothing says so.

    Args:
        variable: Environment variable with ``user:password`` or a key.
        file: A file with the same, which takes precedence.
        keyword: What the server wants before a key: ``ApiKey`` or ``Bearer``.

    Raises:
        NewnormalError: ``DASHBOARD_CREDENTIALS_INVALID`` if there is no such file, or no text of one line in it.
    """
    try:
        secret = file.read_text(encoding="utf-8").strip() if file else os.environ.get(variable, "").strip()
    except (OSError, ValueError):
        secret = "\n"
    if not secret.isprintable() or not secret.isascii() or (file and not secret):
        what = "the credentials are no line of text"
        accepted = "user:password or a key, in one line"
        raise NewnormalError("DASHBOARD_CREDENTIALS_INVALID", what, str(file or variable), accepted, "nothing was done")
    if ":" in secret:
        return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
    return {"Authorization": f"{keyword} {secret}"} if secret else {}
