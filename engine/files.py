"""Files that are replaced as a whole: whoever reads one finds the former content or the new one, never a part."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Writes a file beside the former one, and puts it in its place once it is on the disk.

    A full disk or a kill leaves the former file as it is. On other file systems than this machine's (HDFS, S3) a file
    appears when it has been written.

    Raises:
        OSError: It cannot be written; the former content is still there.
    """
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_text(text)
        if type(part) is type(Path()):
            _to_disk(part)
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    if type(part) is type(Path()):
        _to_disk(file.parent)


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
