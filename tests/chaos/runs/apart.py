"""Keeps the user's settings away from a run that has servers and a pipeline of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path


@contextmanager
def apart(folder: Path) -> Iterator[None]:
    """Works in a folder without a ``newnormal.toml`` and without the variables of settings, until the block ends.

    The run would otherwise write to servers that they name, or look for its results where it did not write them.
    """
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("NEWNORMAL_")}
    try:
        with chdir(folder):
            yield
    finally:
        os.environ.update(kept)
