"""Checks that downloaded files are the pinned ones, byte for byte.

``checksums.sha512`` beside this file is what ``sha512sum`` writes in the directory of the sets, so that ``sha512sum
--check`` reads it: a line per file, `<set>-<version>/<file>`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from engine.spec.errors import NewnormalError

PINNED = Path(__file__).with_name("checksums.sha512")


def pinned(name: str) -> dict[str, str]:
    """SHA-512 in hexadecimal of each file of a set, by file name; ``name`` is that of the set's directory."""
    lines = (line.split() for line in PINNED.read_text().splitlines())
    return {path.removeprefix(f"{name}/"): digest for digest, path in lines if path.startswith(f"{name}/")}


def check(directory: Path, digests: dict[str, str]) -> None:
    """Makes sure that a directory holds the wanted files and no others; files that are not wanted are deleted.

    Args:
        directory: Where the files are.
        digests: SHA-512 of each, by file name.

    Raises:
        NewnormalError: ``DOWNLOAD_ALTERED`` if a file is another than the pinned one, is not pinned, or is missing.
    """
    wrong = [f"{name} is missing" for name in sorted(digests) if not (directory / name).is_file()]
    for file in sorted(directory.iterdir()):
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha512").hexdigest()
        if digest != digests.get(file.name):
            expected = digests.get(file.name, "no such file")
            wrong.append(f"{file.name} has SHA-512 {digest}, pinned is {expected}")
            file.unlink()
    if wrong:
        raise NewnormalError(
            "DOWNLOAD_ALTERED",
            "; ".join(wrong),
            str(PINNED),
            "the files that Maven Central has; see what NEWNORMAL_IVY_SETTINGS names, or a proxy, if it serves others",
            "they were deleted and nothing was started",
        )
