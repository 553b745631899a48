"""Copies a checkpoint at its last completed micro-batch while its job goes on.

Spark writes the files of states, offsets and commits once and never changes them, so a copy is hard links: it takes no
space and little time. Spark also removes old files meanwhile. So a copy is checked to be complete, and made again at a
newer micro-batch if it is not.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from engine.files import recovered
from engine.spark.checkpoint_offsets import last_committed, offsets_of
from engine.spark.checkpoint_topics import IDS
from engine.spark.hadoop_path import HadoopPath, files
from engine.spec.errors import NewnormalError
from engine.state import initial

_TRIES, _PAUSE_SECONDS = 8, 0.25
_APART = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP)
"""Errors of a hard link that a copy does not have, e.g. between file systems."""
_SMALL = ("metadata", "layout.json", "job.json", "settings.json", IDS)
"""Files that are written again in place, so they are copied."""
_SCHEMA = re.compile(r'[A-Za-z][A-Za-z0-9+.-]+:/[^"]*?(/state/\d+/_stateSchema/)')
"""The address of a schema in the metadata of an operator."""
_VERSIONED = re.compile(r"(\d+)\.(zip|changelog)")


@dataclass(frozen=True)
class CheckpointCopy:
    """What was copied.

    Attributes:
        batch: Number of the last micro-batch in the copy; -1 before the first.
        offsets: The next offsets after it, by topic and partition (as text); those with which it begins before the
            first.
        bytes: Size of the files.
    """

    batch: int
    offsets: dict[str, dict[str, int]]
    bytes: int


def copied(checkpoint: Path, target: Path) -> CheckpointCopy:
    """Copies a checkpoint at its last completed micro-batch.

    Args:
        checkpoint: The checkpoint of a job, which may run.
        target: Folder of the copy, which must not exist.

    Raises:
        NewnormalError: ``SAVEPOINT_INCOMPLETE`` if files vanished in each of several attempts.
    """
    for _ in range(_TRIES):
        batch = last_committed(checkpoint)
        _link(checkpoint, target, batch)
        if is_complete(target, batch):
            size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
            return CheckpointCopy(batch, _offsets(target, batch), size)
        shutil.rmtree(target, ignore_errors=True)
        time.sleep(_PAUSE_SECONDS)
    what = f"Spark removed files of {checkpoint.name} in each of {_TRIES} attempts to copy them"
    accepted = "a job that completes fewer micro-batches per second, or none"
    raise NewnormalError("SAVEPOINT_INCOMPLETE", what, str(checkpoint), accepted, "nothing was kept")


def is_complete(copy: Path, batch: int) -> bool:
    """Whether a copy has all files with which a job could go on after a micro-batch."""
    if not (copy / "metadata").exists():
        return False
    if batch < 0:
        return True
    if not all((copy / folder / str(batch)).exists() for folder in ("offsets", "commits")):
        return False
    return all(_has_version(store, batch + 1) for store in _stores(copy))


def _offsets(copy: Path, batch: int) -> dict[str, dict[str, int]]:
    if batch >= 0:
        return offsets_of(copy, batch)
    offsets: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in (initial.offsets(copy) or {}).items():
        offsets.setdefault(topic, {})[str(partition)] = offset
    return offsets


def _link(checkpoint: Path, target: Path, batch: int) -> None:
    target.mkdir(parents=True)
    for name in _SMALL:
        if recovered(checkpoint / name).exists():
            _fetched(checkpoint / name, target / name)
    files = [Path(folder) / str(batch) for folder in ("offsets", "commits") if batch >= 0]
    folders = [initial.FOLDER, *(["state", "sources"] if batch >= 0 else [])]
    files += [file.relative_to(checkpoint) for name in folders for file in _files(checkpoint / name, batch + 1)]
    for path in files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            if "_metadata" in path.parts:
                _fetched(checkpoint / path, target / path)  # see `relocated`
            else:
                _linked(checkpoint / path, target / path)
        except FileNotFoundError:
            continue  # Spark has removed it


def _files(folder: Path, version: int) -> list[Path]:
    """The files below a folder, without hidden ones and states that are newer than a version."""
    paths = []
    for path in files(folder):
        numbered = _VERSIONED.fullmatch(path.name)
        if not path.name.startswith(".") and not (numbered and int(numbered[1]) > version):
            paths.append(path)
    return paths


def _fetched(source: Path, target: Path) -> None:
    """Copies a file, wherever it lies, to a path of this machine."""
    if isinstance(source, HadoopPath):
        source.download(target)
    else:
        shutil.copyfile(source, target)


def _linked(source: Path, target: Path) -> None:
    if isinstance(source, HadoopPath):
        _fetched(source, target)
        return
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _APART:
            raise
        shutil.copyfile(source, target)


def relocated(checkpoint: Path) -> None:
    """Makes a checkpoint that was copied or moved to a folder readable: the paths in its metadata are absolute."""
    for file in checkpoint.glob("state/*/_metadata/*/*"):
        if file.is_file() and not file.name.startswith("."):
            text = file.read_text()
            now = _SCHEMA.sub(rf"file:{checkpoint.resolve()}\1", text)
            if now != text:
                file.write_text(now)


def _stores(copy: Path) -> list[Path]:
    """The folders of the state stores: one for each shard."""
    return [store for store in (copy / "state").glob("*/*") if store.is_dir() and store.name.isdigit()]


def _has_version(store: Path, version: int) -> bool:
    """Whether the newest snapshot and the changes after it lead to a version of a state store."""
    snapshots = [int(file.stem) for file in store.glob("*.zip") if file.stem.isdigit()]
    first = max((number for number in snapshots if number <= version), default=0)
    if not all((store / f"{number}.changelog").exists() for number in range(first + 1, version + 1)):
        return False
    return not first or all((store / "SSTs" / name).exists() for name in _tables_of(store / f"{first}.zip"))


def _tables_of(snapshot: Path) -> list[str]:
    """The names of the files with tables to which a snapshot refers."""
    with zipfile.ZipFile(snapshot) as archive:
        listed = json.loads(archive.read("metadata").decode().partition("\n")[2])
    return [str(file["dfsSstFileName"]) for file in listed.get("sstFiles", [])]
