"""Divides the state of a job anew among another number of shards, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.spec.duration import NEVER, iso
from engine.spec.errors import NewnormalError
from engine.spec.job import Job
from engine.state import known_keys
from engine.state.rescaling import Rescaling
from engine.state.segments import DictSegments, ShardState
from engine.vectorized.build import build

WATERMARK = "watermark"
"""Name of the note in which a shard keeps its clocks."""


def rescaled(job: Job, shards: Sequence[Mapping[str, bytes]], to: int) -> list[dict[str, bytes]]:
    """The segments of each shard of another number of shards; what they hold belongs to the same keys as before.

    Args:
        job: The job.
        shards: The segments of each shard by name.
        to: The new number of shards.

    Raises:
        NewnormalError: ``SHARDS_APART`` if shards that would become one have different watermarks;
            ``RESCALE_UNSUPPORTED`` if the logic of the job cannot divide its state.
    """
    if to == len(shards):
        return [dict(segments) for segments in shards]
    before, stores = [ShardState(_stored(segments)) for segments in shards], [DictSegments() for _ in range(to)]
    states = Rescaling(before, [ShardState(store) for store in stores], job.key[0])
    for shard, state, sources in states.shards():
        snapshots = [source.notes[WATERMARK] for source in sources if WATERMARK in source.notes]
        if len(snapshots) < len(sources) and snapshots:
            snapshots.append({})
        state.notes[WATERMARK] = _clocks(job, snapshots, shard if job.direct(to) else None, to)
    known_keys.rescale(states.before, states.after)
    build(job.processor).rescale(states)
    for state in states.after:
        state.save()
    return [store.values for store in stores]


def _stored(segments: Mapping[str, bytes]) -> DictSegments:
    store = DictSegments()
    store.values = dict(segments)
    return store


def watermark_of(snapshot: Mapping[str, Any]) -> int:
    """The watermark in a note of clocks, epoch milliseconds; `NEVER` before the first one."""
    return int(snapshot.get("watermark", NEVER))


def _clocks(job: Job, snapshots: Sequence[Mapping[str, Any]], shard: int | None, shards: int) -> dict[str, Any]:
    """The clocks of a new shard: those of all its partitions, with the watermark that its sources share.

    Args:
        job: The job.
        snapshots: The clocks of its sources, see `engine.runtime.input_clocks.InputClocks.snapshot`.
        shard: Its number if it reads its own partitions only; otherwise ``None``.
        shards: Number of new shards.
    """
    marks = {watermark_of(snapshot) for snapshot in snapshots}
    if len(marks) > 1:
        times = " and ".join(iso(mark) if mark > NEVER else "none yet" for mark in sorted(marks))
        what = f"shards of {job.name} that would become one have the watermarks {times}"
        accepted = "a savepoint of a job that has caught up with its input; or a multiple of the old number of shards"
        raise NewnormalError("SHARDS_APART", what, job.name, accepted, "nothing was restored")
    if not snapshots:
        return {}
    inputs = [snapshot.get("inputs", [snapshot]) for snapshot in snapshots if snapshot]
    merged = [_tracker(job, list(same), shard, shards) for same in zip(*inputs, strict=True)]
    return merged[0] if len(merged) == 1 else {"watermark": watermark_of(snapshots[0]), "inputs": merged}


def _tracker(job: Job, snapshots: Sequence[Mapping[str, Any]], shard: int | None, shards: int) -> dict[str, Any]:
    """The clocks of one input: each partition has the same clock in all shards that read it."""
    clocks = {(clock[0], clock[1]): clock for snapshot in snapshots for clock in snapshot.get("clocks", [])}
    kept = [
        clock
        for (topic, partition), clock in sorted(clocks.items())
        if shard is None or topic in job.broadcast or partition % shards == shard
    ]
    return {**snapshots[0], "clocks": kept, "silent": all(snapshot.get("silent", False) for snapshot in snapshots)}
