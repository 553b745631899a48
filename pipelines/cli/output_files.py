"""Files that a command writes: looked at before it begins its work, so that no work is lost for want of a folder."""

from __future__ import annotations

from pathlib import Path

from engine.spec.errors import NewnormalError


def file_to_write(path: Path | None) -> Path | None:
    """Makes the folder of a file that an option names, and checks that the file can be written; for ``callback``.

    Raises:
        NewnormalError: ``OUTPUT_NOT_WRITABLE``.
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
    """The same for a folder.

    Raises:
        NewnormalError: ``OUTPUT_NOT_WRITABLE``.
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
