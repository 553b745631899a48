"""Lets a checkpoint go on with the topics that its job reads now, whatever topics it read before.

A new release, or a user, may let a job read one more topic or one less. Where a micro-batch begins is the end of the
one before, so the offsets in the files of the last one completed, and of one that was planned after it, are changed:
they get the partitions that are new, and lose those that are no longer read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import structlog

from engine.files import recovered, write_whole
from engine.kafka.offsets import Offsets
from engine.kafka.retained import Standing
from engine.spark.checkpoint_offsets import next_offsets, standing_files
from engine.state import initial

IDS = "topics.json"
"""File of a checkpoint with the identities of the topics that its job reads."""

log = structlog.get_logger()


def standings(
    checkpoints: Path, reads: Mapping[str, Sequence[str]], elsewhere: Collection[str] = ()
) -> dict[str, Standing]:
    """Where jobs stand; those without a checkpoint have no offsets.

    Args:
        checkpoints: Directory of the jobs' checkpoints.
        reads: The topics that each job reads from now on.
        elsewhere: Those of the jobs that read from elsewhere what Kafka has removed.
    """
    return {
        job: Standing(next_offsets(checkpoints / job), topics, _ids(checkpoints / job), job in elsewhere)
        for job, topics in reads.items()
    }


def settle(checkpoint: Path, topics: Collection[str], offsets: Offsets, ids: Mapping[str, str]) -> None:
    """Lets a checkpoint go on at some offsets, and keeps the identities of its topics.

    The file that says where it stands is written last, so that after a kill all is done again.

    Args:
        checkpoint: The checkpoint; one that is new only gets the identities.
        topics: The topics that its job reads.
        offsets: The next offset of each of their partitions; empty for a new one.
        ids: The identities of topics, of others too.
    """
    known = next_offsets(checkpoint)
    moved = {place: offset for place, offset in offsets.items() if known.get(place) != offset}
    if known and (moved or known.keys() - offsets.keys()):
        begins, ends = ({topic for topic, _ in some} for some in (moved, known.keys() - offsets.keys()))
        log.info("the job reads other topics now", job=checkpoint.name, begins=sorted(begins), ends=sorted(ends))
        for file in standing_files(checkpoint):
            _rewrite(file, offsets, moved)
        if initial.offsets(checkpoint) is not None:
            initial.begin_at(checkpoint, offsets)
    before = _ids(checkpoint)
    mine = {topic: text for topic in topics if (text := ids.get(topic) or before.get(topic))}
    if mine != before:
        checkpoint.mkdir(parents=True, exist_ok=True)
        write_whole(checkpoint / IDS, json.dumps(mine, sort_keys=True))


def _rewrite(file: Path, offsets: Offsets, moved: Offsets) -> None:
    """Changes the offsets in a file of Spark's, which are its last line."""
    text = recovered(file).read_text()
    begin = text.rindex("\n") + 1
    there = json.loads(text[begin:])
    now: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        kept = there.get(topic, {}).get(str(partition), offset)
        now.setdefault(topic, {})[str(partition)] = moved.get((topic, partition), kept)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of the former content
    write_whole(file, text[:begin] + json.dumps(now, separators=(",", ":")))


def _ids(checkpoint: Path) -> dict[str, str]:
    try:
        return dict(json.loads(recovered(checkpoint / IDS).read_text()))
    except FileNotFoundError:
        return {}
