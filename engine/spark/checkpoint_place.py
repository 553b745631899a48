"""Where checkpoints may lie: in a folder, which on a cluster all machines see, or at an address that Hadoop knows."""

from __future__ import annotations

import re
from pathlib import Path

from engine.spark.hadoop_path import HadoopPath, is_address
from engine.spec.errors import NewnormalError

_WHOLE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+://[^/]+/.*[^/].*")
ACCEPTED = "a folder; or an address with a path, scheme://authority/path, such as hdfs://name-node:8020/newnormal"


def checkpoint_place(path: str | Path, setting: str) -> Path:
    """The folder that a path or address names, absolute.

    Args:
        path: The path; as text if it is an address.
        setting: Name of the setting or argument.

    Raises:
        NewnormalError: ``CHECKPOINT_PLACE`` if it is no whole address.

    >>> checkpoint_place("s3a://bucket/state", "state")
    HadoopPath('s3a://bucket/state')
    """
    if isinstance(path, HadoopPath):
        return path
    if not is_address(path):
        return Path(path).expanduser().absolute()
    if not _WHOLE.fullmatch(str(path)):
        what, now = f"{setting} = {path}: this is neither a folder nor a whole address", "nothing was started"
        raise NewnormalError("CHECKPOINT_PLACE", what, setting, ACCEPTED, now)
    return HadoopPath(path)
