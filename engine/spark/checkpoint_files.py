"""Reads the state of all shards out of the files of a checkpoint, without Spark, which takes long to start.

Spark keeps the state of a shard in RocksDB: from time to time a snapshot (a zip file that names tables), and for each
micro-batch after it a changelog. Keys and values are rows in Spark's binary format. Only what the jobs write is read:
one map from names to bytes. What looks otherwise is refused; `engine.spark.checkpoint_state` then reads it with Spark.

Source: Spark 4.2: RocksDBFileManager, StateStoreChangelogWriterV2, PrefixKeyScanStateEncoder, UnsafeRow.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from rocksdict import AccessType, Options, Rdict

from engine.spark.checkpoint_offsets import last_committed
from engine.state import initial
from engine.state.segments import NOTES

Segments = dict[str, bytes]
"""The segments of one shard by name."""

_BLOCK, _END_OF_BLOCKS = b"LZ4Block", 21
_STORED = 0x10
_HEADER = b"\x00\x02v2"
_PUT, _DELETE = 1, 16
_FAMILY = "segments"


class OtherFormatError(Exception):
    """The files are not as the jobs' Spark writes them."""


def states(checkpoint: Path, shards: int) -> list[Segments]:
    """The segments of each shard after the last completed micro-batch.

    Args:
        checkpoint: A copy of a checkpoint (`engine.spark.checkpoint_copy`), on this machine.
        shards: Number of shards with which it was made.

    Raises:
        OtherFormatError: The state has to be read with Spark.
    """
    version = last_committed(checkpoint) + 1
    try:
        segments = [
            _state(checkpoint / "state" / "0" / str(shard), version) if version else {} for shard in range(shards)
        ]
    except Exception as error:  # RocksDB's errors have no type of their own; whatever it is, Spark reads it or says it
        raise OtherFormatError(str(error)) from error
    return [kept if NOTES in kept else initial.segments(checkpoint, shard) for shard, kept in enumerate(segments)]


def _state(store: Path, version: int) -> Segments:
    """The segments of one shard at a version of its store: those of the newest snapshot, then what changed."""
    if not store.exists():
        return {}
    first = max((int(file.stem) for file in store.glob("*.zip") if int(file.stem) <= version), default=0)
    segments = dict(_snapshot(store, first)) if first else {}
    for number in range(first + 1, version + 1):
        for name, value in _changes(_unpacked((store / f"{number}.changelog").read_bytes())):
            if value is None:
                segments.pop(name, None)
            else:
                segments[name] = value
    return segments


def _snapshot(store: Path, version: int) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(store / f"{version}.zip") as archive, tempfile.TemporaryDirectory() as folder:
        listed = json.loads(archive.read("metadata").decode().partition("\n")[2])
        archive.extractall(folder, [name for name in archive.namelist() if name != "metadata"])
        for file in listed["sstFiles"]:
            there, here = (Path(file[name]).name for name in ("dfsSstFileName", "localFileName"))
            _linked(store / "SSTs" / there, Path(folder) / here)
        family = listed.get("columnFamilyMapping", {})[_FAMILY]
        database = Rdict(folder, Options(raw_mode=True), access_type=AccessType.read_only())
        try:
            for key, value in database.items():
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                if struct.unpack_from("<h", key)[0] == family:
                    yield _name(key), _value(value)
        finally:
            database.close()


def _linked(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _unpacked(data: bytes) -> bytes:
    """The content of a stream of LZ4 blocks as the Java library lz4-java writes it."""
    codec, parts, at = pa.Codec("lz4_raw"), list[bytes](), 0
    while at < len(data):
        if data[at : at + len(_BLOCK)] != _BLOCK:
            raise OtherFormatError("the changelog is not packed by LZ4")
        token, packed, size = struct.unpack_from("<Bii", data, at + len(_BLOCK))
        at += _END_OF_BLOCKS
        block = data[at : at + packed]
        if size:
            parts.append(block if token & 0xF0 == _STORED else codec.decompress(block, size).to_pybytes())
        at += packed
    return b"".join(parts)


def _changes(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    """The puts and deletions (``None``) in a changelog, in their order."""
    if not data.startswith(_HEADER):
        raise OtherFormatError("the changelog is of another version")
    at = len(_HEADER)
    while at + 5 <= len(data):  # one byte ends it
        kind, size = struct.unpack_from(">Bi", data, at)
        key, at = data[at + 5 : at + 5 + size], at + 5 + size
        (size,) = struct.unpack_from(">i", data, at)
        value, at = data[at + 4 : at + 4 + max(size, 0)], at + 4 + max(size, 0)
        if kind not in (_PUT, _DELETE):
            raise OtherFormatError(f"a change is of kind {kind}")
        yield _name(key), _value(value) if kind == _PUT else None


def _name(key: bytes) -> str:
    """The name in a key: two bytes for the map, the size of the shard's row, that row, and the row with the name."""
    (shard,) = struct.unpack_from("<i", key, 2)
    return _field(_field(key[6 + shard + 1 :])).decode()


def _value(value: bytes) -> bytes:
    """The bytes in a value: one byte says how it is encoded, then a row."""
    return _field(value[1:])


def _field(row: bytes) -> bytes:
    """The only field of one of Spark's binary rows: eight bytes for nulls, then its size and its offset in the row."""
    size, offset = struct.unpack_from("<ii", row, 8)
    if not 16 <= offset <= offset + size <= len(row):
        raise OtherFormatError("a row has other fields")
    return row[offset : offset + size]
