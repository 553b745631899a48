"""Reads from a checkpoint which micro-batches Spark has completed, and up to which Kafka offsets.

Spark plans a micro-batch in the file ``offsets/<number>`` and completes it with ``commits/<number>``. Both are small
text files; a source's offsets are one line of JSON.
"""

from __future__ import annotations

import json
from pathlib import Path

from engine.kafka.offsets import Offsets
from engine.state import initial


def last_committed(checkpoint: Path) -> int:
    """Number of the last micro-batch that was completed; -1 if there is none."""
    return max(_numbers(checkpoint / "commits"), default=-1)


def offsets_of(checkpoint: Path, batch: int) -> dict[str, dict[str, int]]:
    """The next offsets after a micro-batch, by topic and partition (as text); empty if the batch is not there."""
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    except FileNotFoundError:
        return {}
    offsets: dict[str, dict[str, int]] = {}
    for line in lines[2:]:  # a version and metadata come first, then one line for each source
        if line != "-":
            offsets |= json.loads(line)
    return offsets


def committed_offsets(checkpoint: Path) -> dict[str, dict[str, int]]:
    """The next offsets after the last completed micro-batch; empty before the first."""
    return offsets_of(checkpoint, last_committed(checkpoint))


def next_offsets(checkpoint: Path) -> Offsets:
    """Where a job goes on to read; empty if that is not known, as before its first start."""
    first = initial.offsets(checkpoint)
    if last_committed(checkpoint) < 0 and first is not None:
        return first
    committed = committed_offsets(checkpoint) or initial_offsets(checkpoint)
    return {(topic, int(p)): offset for topic, offsets in committed.items() for p, offset in offsets.items()}


def standing_files(checkpoint: Path) -> list[Path]:
    """Spark's files that say where a job goes on: those of planned micro-batches, and last that of the one before."""
    done = last_committed(checkpoint)
    files = [
        checkpoint / "offsets" / str(n) for n in sorted(_numbers(checkpoint / "offsets"), reverse=True) if n >= done
    ]
    begin = checkpoint / "sources" / "0" / "0"
    return [*files, begin] if done < 0 and begin.exists() else files


def initial_offsets(checkpoint: Path) -> dict[str, dict[str, int]]:
    """The offsets at which Spark's Kafka source began with a new checkpoint; empty if it has not begun."""
    try:
        text = (checkpoint / "sources" / "0" / "0").read_text()
    except FileNotFoundError:
        return {}
    return dict(json.loads(text[text.index("{") :]))


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(file.name) for file in folder.iterdir() if file.name.isdigit()]
    except FileNotFoundError:
        return []
