"""Where Spark's Python workers look for modules."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path


def share_module_path(*folders: Path) -> None:
    """Lets the workers of a Spark session that this process starts later find the modules that this process finds.

    A worker takes its module path from the environment variable ``PYTHONPATH``, which it inherits from this process.

    Args:
        folders: Further folders, which are first put at the end of this process's own module path.
    """
    sys.path += [str(folder) for folder in folders if str(folder) not in sys.path]
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(path or ".").absolute()) for path in sys.path)
    importlib.invalidate_caches()
