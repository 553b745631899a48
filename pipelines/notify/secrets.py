"""Reads secrets from the file or the environment variable that a channel names. No error message shows one."""

from __future__ import annotations

import os

from engine.spec.errors import NewnormalError
from pipelines.contracts.settings.logins.secret_file import line_of


def secret(where: str, file: str | None, variable: str | None) -> str | None:
    """The secret, without the end of its line; ``None`` if neither a file nor a variable is named.

    Args:
        where: The setting, for messages, e.g. ``notify.channels.night.password``.
        file: Path of the file.
        variable: Name of the environment variable.

    Raises:
        NewnormalError: ``NOTIFY_SECRET`` if it cannot be read, is empty or has more than one line.
    """
    if file is None and variable is None:
        return None
    if file is not None:
        place = f"{where}_file: {file}"
        value, what = line_of(file)
        if not value:
            raise NewnormalError("NOTIFY_SECRET", what, place, "a readable file of one line")
    else:
        place, value = f"{where}_variable: {variable}", os.environ.get(str(variable), "").strip()
    if not value or not value.isprintable():
        what = "the secret is empty, or has more than one line"
        raise NewnormalError("NOTIFY_SECRET", what, place, "a secret of one line")
    return value
