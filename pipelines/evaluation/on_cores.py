"""Judges the machines of a data set on several cores: each thread has some of the machines.

Threads, as compiled models and Polars run beside one another in one process: handing values and verdicts from process
to process takes longer than judging them.
"""

from __future__ import annotations

import os
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from threading import Event

import polars as pl

from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.recorded import Progress, judge

_WORTH = 100_000
"""With fewer values for each thread, a further one saves nothing."""

_LOOK_SECONDS = 0.2


def judge_on_cores(
    values: pl.DataFrame,
    settings: DetectorSettings,
    progress: Progress = lambda _done, _total: None,
    threads: int | None = None,
) -> pl.DataFrame:
    """Judges values as `judge` does, bit for bit, with the machines divided among threads.

    Args:
        values: See `judge`.
        settings: The detector's settings.
        progress: See `Progress`; it is called by the thread that calls this function.
        threads: How many there are at most; ``None``: one for each core, but fewer where there are few values.
    """
    if threads is None:
        threads = max(1, min(len(os.sched_getaffinity(0)), values.height // _WORTH))
    parts = _parts(values, threads)
    if len(parts) < 2:
        return judge(values, settings, progress)
    done, stopped = [0] * len(parts), Event()

    def judged(at: int) -> pl.DataFrame:
        def note(so_far: int, _total: int) -> None:
            if stopped.is_set():
                raise CancelledError
            done[at] = so_far

        return judge(parts[at], settings, note)

    with ThreadPoolExecutor(len(parts)) as pool:
        tasks = [pool.submit(judged, at) for at in range(len(parts))]
        try:
            while wait(tasks, _LOOK_SECONDS).not_done:
                progress(sum(done), values.height)
        finally:
            stopped.set()  # Ctrl-C: what the threads have begun ends with their next part
        verdicts = pl.concat([task.result() for task in tasks])
    progress(values.height, values.height)
    return verdicts.sort("entity", "window_end", "metric", maintain_order=True)


def _parts(values: pl.DataFrame, number: int) -> list[pl.DataFrame]:
    """Divides the values by machine into at most so many parts of about the same size."""
    sizes = values.group_by("entity").len().sort("len", "entity", descending=[True, False])
    held: list[list[str]] = [[] for _ in range(min(number, sizes.height))]
    filled = [0] * len(held)
    for entity, size in sizes.rows():
        least = filled.index(min(filled))
        held[least].append(entity)
        filled[least] += size
    return [values.filter(pl.col("entity").is_in(entities)) for entities in held]
