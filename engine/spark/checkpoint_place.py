"""Where checkpoints may lie: in a folder, which on a cluster all machines see. Addresses of object stores are refused.

Locks, layouts, savepoints and ledgers are files that are read and written beside Spark's own; all of that is by path.
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.spec.errors import NewnormalError

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def is_address(path: str | Path) -> bool:
    """True if a text is an address such as ``s3a://bucket/path``, which as a path would be a folder ``s3a:``.

    >>> is_address("s3a://bucket/state"), is_address(Path("hdfs://host/state")), is_address("/mnt/state")
    (True, True, False)
    """
    return _ADDRESS.match(str(path)) is not None


def checkpoint_folder(path: str | Path, setting: str) -> Path:
    """The folder that a path names, absolute.

    Args:
        path: The path.
        setting: Name of the setting or argument.

    Raises:
        NewnormalError: ``CHECKPOINT_PLACE`` if it is an address.
    """
    if is_address(path):
        what = f"{setting} = {path}: checkpoints cannot lie in an object store or in HDFS"
        accepted = "a folder; on a cluster one that all machines see under the same path, such as NFS"
        raise NewnormalError("CHECKPOINT_PLACE", what, setting, accepted, "nothing was started")
    return Path(path).expanduser().absolute()
