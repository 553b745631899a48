"""The models of a shard, unpacked, in memory that all workers share, so that not all are read for a few windows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.state.kept_arrays import KeptArrays
from pipelines.jobs.detect.metrics.model_log import ModelLog
from pipelines.jobs.detect.metrics.state import DetectionState


@contextmanager
def opened(log: ModelLog, models: DetectionState, folder: Path | None) -> Iterator[DetectionState]:
    """The models of now, to be changed and written to the log; what they are then is kept for the next micro-batch.

    If the block raises an error, nothing is kept, and the next micro-batch reads what the log holds.

    Args:
        log: The models in the state.
        models: A new state, which is filled.
        folder: Where they are kept; ``None``: nowhere.
    """
    kept = _held(folder)
    try:
        if not (kept and _taken(kept, log, models)):
            log.read(models)
        yield models
        if kept and log.digest:
            arrays = {f"{n}.{each}": a for n, table in models.tables.items() for each, a in table.arrays().items()}
            frames = {name: table.index.keys for name, table in models.tables.items()}
            kept.put(log.digest, arrays, frames | {"worst": models.worst})
    finally:
        if kept:
            kept.close()


def _held(folder: Path | None) -> KeptArrays | None:
    try:
        return KeptArrays(folder) if folder else None
    except OSError:  # an attempt of this task that Spark has given up still holds it, or there is no such memory
        return None


def _taken(kept: KeptArrays, log: ModelLog, models: DetectionState) -> bool:
    if log.digest is None:
        return False
    kinds = {f"{n}.{each}": kind for n, table in models.tables.items() for each, kind in table.kinds().items()}
    arrays = kept.take(log.digest, kinds)
    if arrays is None:
        return False
    for name, table in models.tables.items():
        own = f"{name}."
        mine = {each.removeprefix(own): array for each, array in arrays.items() if each.startswith(own)}
        table.adopt(mine, kept.frame(name))
    models.worst = kept.frame("worst")
    models.stored()
    return True
