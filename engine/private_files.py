"""Folders and files that other users of this machine cannot read, replace by links, or put anything into."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from engine.spec.errors import NewnormalError

_OF_ROOT = Path("/run")
"""Only root may write there, so nobody else can have made what lies there."""


def private_folder(path: Path) -> Path:
    """Creates a folder that its owner alone can enter, with those above it; one of this user's that exists is closed.

    A folder of somebody else is left as it is, such as a volume that a container has been given; and so is one that is
    there for others, too: ``/tmp``, the home directory, the working directory.

    Args:
        path: The folder; it may be a link to one.

    Raises:
        OSError: It cannot be created.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        there = os.fstat(opened)
        shared = bool(there.st_mode & (stat.S_ISVTX | stat.S_IWOTH)) or path.resolve() in (Path.home(), Path.cwd())
        if there.st_uid == os.geteuid() and there.st_mode & 0o077 and not shared:
            os.fchmod(opened, there.st_mode & 0o7700)
    finally:
        os.close(opened)
    return path


def own_temporary_folder(name: str) -> Path:
    """A folder of this user's for files that all its processes find under one name, but none of another user.

    It lies where everybody may write, except root's, so its owner is looked at before it is used, and it is no link.

    Args:
        name: What the files are for, e.g. ``locks``.

    Raises:
        NewnormalError: ``DIRECTORY_FOREIGN`` if somebody else has made something of that name.
    """
    user = os.geteuid()
    base = _OF_ROOT if user == 0 and os.access(_OF_ROOT, os.W_OK) else Path(tempfile.gettempdir())
    folder = base / f"newnormal-{user}-{name}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # a link, or no folder
        raise _foreign(folder) from None
    try:
        if os.fstat(opened).st_uid != user:
            raise _foreign(folder)
        os.fchmod(opened, 0o700)
    finally:
        os.close(opened)
    return folder


def _foreign(folder: Path) -> NewnormalError:
    what = f"{folder} is not a folder of this user's"
    return NewnormalError("DIRECTORY_FOREIGN", what, str(folder), "remove it", "nothing was started")
