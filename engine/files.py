"""Files that are replaced as a whole: whoever reads one finds the former content or the new one, never a part."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Writes a file beside the former one, and puts it in its place once it is on the disk.

    A full disk or a kill leaves the former file as it is. On other file systems than this machine's a kill may leave
    neither for a moment: `recovered` finds the new content.

    Raises:
        OSError: It cannot be written; the former content is still there.
    """
    local = _is_local(file)
    recovered(file)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_text(text)
        if local:
            _to_disk(part)
        else:
            part = part.replace(_whole(file))
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    if local:
        _to_disk(file.parent)


def recovered(file: Path) -> Path:
    """The file, put in its place if a kill has left it beside.

    HDFS and this machine rename over a file at once. Object stores do not: the former file is deleted first.
    """
    if not _is_local(file) and not file.exists() and _whole(file).exists():
        _whole(file).rename(file)
    return file


def _whole(file: Path) -> Path:
    """Where the new content lies, complete, until it takes the place of the former one."""
    return file.with_name(f".{file.name}.whole")


def _is_local(path: Path) -> bool:
    return type(path) is type(Path())


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
