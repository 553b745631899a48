"""Unpacked state in files that processes map, so that the next micro-batch need not unpack it again.

State that was read from segments once is kept as arrays, in a folder in memory. Whoever takes them changes them in
place. They are never the truth: they carry the version of the state that they hold, and what is not here, is in use by
another process, or is of another version than the stored state, is read from the segments. While they are taken they
have no version; so if their holder dies, or fails, what it has left is not used.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]

_SPARE = 0.25
"""This share of the folder's space is left to others."""


class KeptArrays:
    """The arrays and frames of one shard, as their holder; `close` lets the next one have them.

    Args:
        folder: Where they are; it is made in the one that it is in.

    Raises:
        OSError: Another process or object holds them, or there is no such folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory(dir="/dev/shm") as name:
    ...     first = KeptArrays(Path(name, "shard"))
    ...     first.put("v1", {"x": np.arange(3)}, {})
    ...     first.close()
    ...     second = KeptArrays(Path(name, "shard"))
    ...     arrays = second.take("v1", {"x": np.dtype(np.int64)})
    ...     second.take("v1", {"x": np.dtype(np.int64)})  # whoever has taken them may be changing them
    ...     second.close()
    >>> arrays["x"]
    array([0, 1, 2])
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._mapped: dict[str, NDArray[np.generic]] = {}
        self._frames: dict[str, pl.DataFrame] = {}
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise

    def take(self, version: str, kinds: Mapping[str, np.dtype[np.generic]]) -> Arrays | None:
        """Takes what is kept, to change it in place; without a `put` afterwards it is lost.

        Args:
            version: The version that is wanted.
            kinds: Name and type of each array that is wanted; a type may have a shape, that of a row.

        Returns:
            The arrays; ``None`` if this version is not kept.
        """
        mark = self.folder / "version"
        try:
            if mark.read_text() != version:
                return None
            mark.unlink()
            self._mapped = {name: self._map(name, kind) for name, kind in kinds.items()}
        except OSError:
            return None
        return dict(self._mapped)

    def frame(self, name: str) -> pl.DataFrame:
        """A frame of the version that was taken."""
        with pa.memory_map(str(self.folder / f"{name}.arrow")) as source:
            frame = pl.from_arrow(pa.ipc.open_file(source).read_all())
        assert isinstance(frame, pl.DataFrame)
        self._frames[name] = frame
        return frame

    def put(self, version: str, arrays: Mapping[str, NDArray[np.generic]], frames: Mapping[str, pl.DataFrame]) -> None:
        """Keeps arrays and frames as those of a version; those that were taken and not replaced are there already.

        Where there is no space, nothing is kept.
        """
        mark = self.folder / "version"
        mark.unlink(missing_ok=True)
        new = {f"{name}.array": array for name, array in arrays.items() if self._mapped.get(name) is not array}
        fresh = {f"{name}.arrow": frame for name, frame in frames.items() if self._frames.get(name) is not frame}
        try:
            if not has_space(self.folder, sum(array.nbytes for array in new.values()), _SPARE):
                return
            for name, array in new.items():
                with self._new(name).open("wb") as out:
                    out.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            for name, frame in fresh.items():
                frame.write_ipc(self._new(name), compression="uncompressed")
            self._new("version").write_text(version)
            for name in (*new, *fresh, "version"):  # what others have mapped stays as it is until they let it go
                self._new(name).replace(self.folder / name)
        except OSError:
            mark.unlink(missing_ok=True)

    def close(self) -> None:
        """Lets others have what is kept; what was taken must not be changed any more."""
        self._mapped, self._frames = {}, {}
        os.close(self._lock)

    def _new(self, name: str) -> Path:
        return self.folder / f"{name}-new"

    def _map(self, name: str, kind: np.dtype[np.generic]) -> NDArray[np.generic]:
        with (self.folder / f"{name}.array").open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                return np.zeros(0, kind)
            return np.frombuffer(mmap.mmap(file.fileno(), size), kind)


def has_space(folder: Path, size: int, spare: float) -> bool:
    """Whether so many bytes fit in the space of a folder, of which the share ``spare`` is left to others."""
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize - size > spare * space.f_blocks * space.f_frsize
