"""A folder for each of several views of one name: the database in it has one writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import structlog

from engine.locks import try_lock

log = structlog.get_logger()


@contextmanager
def own_folder(views: Path, name: str) -> Iterator[Path]:
    """A context manager: the first of the folders ``name``, ``name-2``, ``name-3``, … that nobody else holds.

    Whoever starts again alone finds the folder from before. A folder is free again however its holder dies.

    Args:
        views: The folder of all views of a version.
        name: Name of the view.
    """
    for number in count(1):
        folder = views / (name if number == 1 else f"{name}-{number}")
        if (held := try_lock(folder / "lock")) is None:
            continue
        with held:
            if number > 1:
                log.info(
                    "another process follows the topics under the same name; this one keeps its own", folder=str(folder)
                )
            yield folder
        return
