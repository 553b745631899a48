"""Looks for secrets where none may stand: in files, in what processes show of themselves, in texts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import psutil


def forms(secret: str) -> set[bytes]:
    """A secret as it is, and as JSON, a JAAS entry, a URL or Base64 write it."""
    quoted = {secret, json.dumps(secret)[1:-1], secret.replace("\\", "\\\\").replace('"', '\\"')}
    quoted |= {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    # within a longer text, Base64 depends on how many bytes come before
    shifted = (base64.b64encode(b"\0" * n + secret.encode())[4 * (n > 0) : -4] for n in range(3))
    return {each.encode() for each in quoted} | set(shifted)


def leaks(secrets: Iterable[str], places: Iterable[tuple[str, bytes]]) -> list[str]:
    """Names of the places in which a secret stands.

    Args:
        secrets: The secrets.
        places: Name and content of each place.
    """
    wanted = [form for secret in secrets for form in forms(secret)]
    return [name for name, content in places if any(form in content for form in wanted)]


def files(*folders: Path) -> Iterator[tuple[str, bytes]]:
    """Path and content of all files in folders; also of files that are named themselves."""
    for folder in folders:
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            if path.is_file():
                yield str(path), path.read_bytes()


def processes(pid: int) -> Iterator[tuple[str, bytes]]:
    """Command line and environment of a process and of those that it has started."""
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            shown = "\0".join([*process.cmdline(), *process.environ().values()])
        except psutil.Error:
            continue  # it has ended meanwhile
        yield f"process {process.pid}", shown.encode()
