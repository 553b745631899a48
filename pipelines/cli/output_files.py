"""Checks before a command starts that the files it will write can be written, so that no work is lost at its end."""

from __future__ import annotations

from pathlib import Path

from engine.spec.errors import NewnormalError


def file_to_write(path: Path | None) -> Path | None:
    """Creates the folder of a file, and checks that the file can be written; a ``callback`` of typer options.

    Raises:
        NewnormalError: ``OUTPUT_NOT_WRITABLE`` if it cannot be written.
    """
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = not path.exists()
            path.open("ab").close()
            if new:
                path.unlink()
        except (OSError, ValueError) as error:
            raise _unwritable(error, path, "a file that can be written") from None
    return path


def folder_to_write(path: Path | None) -> Path | None:
    """Creates a folder for output; a ``callback`` of typer options.

    Raises:
        NewnormalError: ``OUTPUT_NOT_WRITABLE`` if it cannot be created.
    """
    if path is not None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise _unwritable(error, path, "a folder that can be written") from None
    return path


def _unwritable(error: Exception, path: Path, accepted: str) -> NewnormalError:
    why = getattr(error, "strerror", None) or str(error)
    return NewnormalError("OUTPUT_NOT_WRITABLE", why, str(path), accepted, "nothing was done")
