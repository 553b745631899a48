"""Compiles the scalar formulas of the models. Knows no formula, and no model.

A kernel is a function of one series at one window. It is compiled when it is first called, and the machine code is
kept on disk, in a folder named after a digest of all sources of the models: a change of a formula concerns its callers.
Where the sources lie does not matter, so that what was compiled elsewhere can be brought along: see `kept`.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import UserProvidedCacheLocator

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PREFIX = "kernels-"
_HOME = Path(__file__).parent


def _digest() -> str:
    """Names the machine code: of all sources of the models, and of Numba's version."""
    sources = sorted(_HOME.rglob("*.py"))
    return hashlib.sha256(b"".join([numba.__version__.encode(), *(s.read_bytes() for s in sources)])).hexdigest()[:16]


NAME = _PREFIX + _digest()
"""Of the folder with the machine code. Beside the packages it is machine code that came with them."""


class InModels(UserProvidedCacheLocator):
    """Says where Numba keeps the machine code of a function: by its place in the models, wherever these lie.

    Numba's own choice is by the absolute folder of the source. Each executor of a Spark cluster unpacks the models into
    a folder of its own, and would compile all of them for a minute.
    """

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """The folder of a file within the models; that of another file as Numba chooses it."""
        folder = Path(py_file).resolve().parent
        if not folder.is_relative_to(_HOME.resolve()):
            return str(super().get_suitable_cache_subpath(py_file))  # type: ignore[no-untyped-call]
        return ".".join([_HOME.name, *folder.relative_to(_HOME.resolve()).parts])


def _places() -> list[Path]:
    """Where the machine code may be kept, the best place first: with the environment, or in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [parent / "newnormal" / NAME for parent in (Path(sys.prefix) / "share", cache)]


def _writable(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return True
    except OSError:
        return False


def _keep() -> None:
    """Chooses where Numba keeps the machine code, for this process and those that it starts.

    That is where some is, in the first place, also if it came with the packages. Numba only reads where it could write:
    what was compiled in a place where this process may not write, as in an image, is copied to one where it may, at
    worst to a directory of its own, which is deleted at its end.
    """
    places = _places()
    filled = (place for place in [*places, _HOME.parent / NAME] if place.is_dir() and any(place.iterdir()))
    existing = next(filled, None)
    chosen = next((place for place in [existing, *places] if place and _writable(place)), None)
    if chosen is None:
        chosen = Path(tempfile.mkdtemp(prefix="newnormal-kernels-"))
        atexit.register(shutil.rmtree, chosen, ignore_errors=True)
        if existing is None:
            logging.getLogger(__name__).warning(
                "KERNELS_NOT_KEPT: the compiled models can be written to none of %s\n"
                "  accepted: a folder that this user may write to, or NUMBA_CACHE_DIR\n"
                "  now: they are compiled at each start, which takes about a minute",
                ", ".join(str(place) for place in places),
            )
    if existing not in (None, chosen) and not any(chosen.iterdir()):
        shutil.copytree(existing, chosen, dirs_exist_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(chosen)  # type: ignore[attr-defined]


if "NUMBA_CACHE_DIR" not in os.environ:
    _keep()
if "NUMBA_CACHE_LOCATOR_CLASSES" not in os.environ:
    numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.InModels,UserWideCacheLocator"  # type: ignore[attr-defined]


def kernel(formula: _Function) -> _Function:
    """Compiles a function of scalars and records when it is first called; its results are those of Python's floats.

    Division by zero gives an infinity or NaN, as in NumPy. No rounding is traded for speed. A kernel becomes part of
    those that call it, so that what they compute alike is computed once, and tuples of floats stay in registers.
    """
    compiled: Any = numba.njit(cache=True, error_model="numpy", nogil=True, forceinline=True)(formula)
    return compiled


def _mark() -> Path:
    """The file that says that these sources have been compiled."""
    return kept() / f"ready-{NAME}"


def kept() -> Path:
    """The folder of the machine code."""
    return Path(os.environ["NUMBA_CACHE_DIR"])


def is_ready() -> bool:
    """Whether the models have been compiled already, so that importing `models.compiled` only loads them."""
    return _mark().exists()


def mark_ready() -> None:
    """Says that the models have been compiled."""
    kept().mkdir(parents=True, exist_ok=True)
    _mark().touch()


def tidy() -> None:
    """Deletes the machine code of other sources or versions than these, where this one is kept."""
    place = kept()
    if place.name.startswith(_PREFIX):
        for other in place.parent.glob(_PREFIX + "*"):
            if other != place:
                shutil.rmtree(other, ignore_errors=True)


@kernel
def within(value: float, low: float, high: float) -> float:
    """``value`` brought into [low, high].

    >>> within(-3.0, 0.0, 1.0), within(0.5, 0.0, 1.0), within(3.0, 0.0, 1.0)
    (0.0, 0.5, 1.0)
    """
    return min(max(value, low), high)
