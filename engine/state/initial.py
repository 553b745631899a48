"""The initial state of a new checkpoint: files in it with the segments of each shard, and where it begins to read.

A shard takes the segments over in its first micro-batch. Spark's own state of the shard is empty until then, also when
that micro-batch is repeated after a crash, so the segments are taken over exactly once. The files stay, as a shard may
get its first record much later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from engine.state.segments import NOTES, Segments

FOLDER = "initial"
"""Folder of these files in a checkpoint."""
_OFFSETS = "offsets.json"
_SCHEMA = pa.schema([("name", pa.string()), ("value", pa.large_binary())])

Offsets = Mapping[tuple[str, int], int]
"""Next offset of each partition, by topic and partition."""


def write(checkpoint: Path, shards: Sequence[Mapping[str, bytes]], offsets: Offsets) -> None:
    """Writes the initial state of a checkpoint that does not exist yet.

    Args:
        checkpoint: The checkpoint; its folder may be missing.
        shards: The segments of each shard by name; a job without state has no shards.
        offsets: Where the checkpoint begins to read: the offset of some partitions.
    """
    folder = checkpoint / FOLDER
    folder.mkdir(parents=True)
    for shard, segments in enumerate(shards):
        columns = [pa.array(list(segments), pa.string()), pa.array(list(segments.values()), pa.large_binary())]
        with pa.OSFile(str(_file(folder, shard)), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
            writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
    begin_at(checkpoint, offsets)


def begin_at(checkpoint: Path, offsets: Offsets) -> None:
    """Writes where a checkpoint with an initial state begins to read."""
    rows = [[topic, partition, offset] for (topic, partition), offset in sorted(offsets.items())]
    (checkpoint / FOLDER / _OFFSETS).write_text(json.dumps(rows))


def offsets(checkpoint: Path) -> Offsets | None:
    """Where a checkpoint with an initial state begins to read; ``None`` for other checkpoints."""
    try:
        rows = json.loads((checkpoint / FOLDER / _OFFSETS).read_text())
    except FileNotFoundError:
        return None
    return {(topic, partition): offset for topic, partition, offset in rows}


def segments(checkpoint: Path, shard: int) -> dict[str, bytes]:
    """The segments with which a shard begins, by name; none if the checkpoint has no initial state for it."""
    file = _file(checkpoint / FOLDER, shard)
    if not file.exists():
        return {}
    table = pa.ipc.open_file(pa.BufferReader(file.read_bytes())).read_all()
    return dict(zip(table["name"].to_pylist(), table["value"].to_pylist(), strict=True))


def take_over(state: Segments, checkpoint: Path, shard: int) -> None:
    """Gives a shard that has had no micro-batch yet the segments with which it begins."""
    if state.get(NOTES) is None:
        for name, value in segments(checkpoint, shard).items():
            state.put(name, value)


def _file(folder: Path, shard: int) -> Path:
    return folder / f"{shard}.arrow"
