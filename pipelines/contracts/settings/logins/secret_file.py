"""Reads secrets and certificates from files; what they hold never stands in a message."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from engine.spec.errors import NewnormalError


def line_of(path: str) -> tuple[str, str]:
    """The only line of a file, without blanks around it, and why it cannot be used.

    Returns:
        (the line, "") or ("", what is wrong with the file).
    """
    try:
        line = Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError, RuntimeError) as error:
        return "", getattr(error, "strerror", None) or "the file is no text"
    if not line:
        return "", "the file is empty"
    return (line, "") if line.isprintable() else ("", "the file has more than one line")


def secret(where: str, value: SecretStr, file: str) -> str:
    """A secret from a setting, or from the file that its sister setting names; empty if neither is given.

    Args:
        where: The setting, e.g. ``kafka.sasl_password``; that of the file ends in ``_file``.
        value: Its value.
        file: Path of the file; it is read now.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if the file cannot be used.
    """
    if not file:
        return value.get_secret_value()
    line, what = line_of(file)
    if not line:
        raise refusal(f"{where}_file: {file}", what, "a readable file of one line")
    return line


def pem(where: str, file: str, kinds: tuple[str, ...], accepted: str) -> str:
    """The text of a file of certificates or keys in PEM form; empty without a file.

    Args:
        where: The setting that names the file.
        file: Path of the file; it is read now.
        kinds: What the file must hold one of, e.g. ``CERTIFICATE``.
        accepted: The same in words, for the message.

    Raises:
        NewnormalError: ``LOGIN_FILE`` if the file cannot be read, or holds something else.
    """
    if not file:
        return ""
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError, RuntimeError) as error:
        raise refusal(f"{where}: {file}", getattr(error, "strerror", None) or "the file is no text", accepted) from None
    if not any(f"-----BEGIN {kind}-----" in text for kind in kinds):
        raise refusal(f"{where}: {file}", f"the file holds no {' and no '.join(kinds)} in PEM form", accepted)
    return text


def refusal(where: str, why: str, accepted: str) -> NewnormalError:
    """The error ``LOGIN_FILE``."""
    return NewnormalError("LOGIN_FILE", why, where, accepted, "nothing was started")
