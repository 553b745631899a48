"""Judges the machines of a data set on several cores: each process has some of the machines."""

from __future__ import annotations

import os
import signal
from collections.abc import MutableSequence
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context

import polars as pl

from pipelines.contracts.settings import DetectorSettings
from pipelines.evaluation.recorded import Progress, judge
from pipelines.evaluation.side_process import end_with_parent

_WORTH = 500_000
"""With fewer values for each process, a further one takes longer to start than it saves."""

_LOOK_SECONDS = 0.2

_done: MutableSequence[int] = []
"""How many values each process has judged; all processes share it."""


def judge_on_cores(
    values: pl.DataFrame,
    settings: DetectorSettings,
    progress: Progress = lambda _done, _total: None,
    processes: int | None = None,
) -> pl.DataFrame:
    """Judges values as `judge` does, bit for bit, with the machines divided among processes.

    Args:
        values: See `judge`.
        settings: The detector's settings.
        progress: See `Progress`.
        processes: How many there are at most; ``None``: one for each core, but fewer where there are few values.

    Raises:
        BrokenProcessPool: If a process was ended from outside.
    """
    if processes is None:
        processes = max(1, min(len(os.sched_getaffinity(0)), values.height // _WORTH))
    parts = _parts(values, processes)
    if len(parts) < 2:
        return judge(values, settings, progress)
    context = get_context("spawn")  # a fork would copy the locks of Polars' threads as they are
    done = context.Array("q", len(parts), lock=False)
    with ProcessPoolExecutor(len(parts), context, _begin, (done,)) as pool:
        tasks = [pool.submit(_judge, part, settings, at) for at, part in enumerate(parts)]
        while wait(tasks, _LOOK_SECONDS).not_done:
            progress(sum(done), values.height)
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


def _begin(done: MutableSequence[int]) -> None:
    global _done  # noqa: PLW0603  a process of the pool keeps it for its tasks
    _done = done
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends all processes; this one without a stack trace


def _judge(values: pl.DataFrame, settings: DetectorSettings, at: int) -> pl.DataFrame:
    def progress(done: int, _total: int) -> None:
        _done[at] = done

    return judge(values, settings, progress)
