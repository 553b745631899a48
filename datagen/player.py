"""Plays recorded series from CSV files, in order of event time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from datagen.series import USUAL, Reading, SeriesReport, read_files
from datagen.sinks import RecordSink
from datagen.wall_clock import Clock, WallClock
from engine.spec.errors import NewnormalError

Instants = npt.NDArray[np.int64]
_TICK_MS = 200
_ROWS = 100_000


def load(files: Sequence[str | Path], reading: Reading = USUAL) -> tuple[pl.DataFrame, tuple[SeriesReport, ...]]:
    """The columns of `Telemetry` of all files together, in order of event time; and the report of each file.

    Raises:
        NewnormalError: As `read_files`.
    """
    frame, reports = read_files(files, reading)
    coded = [pl.col(name).cast(pl.Categorical) for name in ("entity", "metric")]
    return frame.select("time", *coded, "value", pl.lit("gauge").alias("kind")), reports


@dataclass(frozen=True)
class Programme:
    """The samples to play, in order.

    Args:
        frame: The samples, with the event times that they will have.
        due: When each sample is sent, epoch ms.
    """

    frame: pl.DataFrame
    due: Instants


def programme(frame: pl.DataFrame, speed: float, shift_to_now: bool, now: int) -> Programme:
    """Decides when each sample is sent, and with which event time.

    Args:
        frame: The samples, from `load`.
        speed: Event time per wall-clock time; 0: as fast as possible.
        shift_to_now: Whether to move all event times by the same amount, so that the series begins now. If it is played
            faster than real time, it ends at the moment at which playing ends.
        now: The start of playing, epoch ms.

    Raises:
        NewnormalError: ``SPEED_INVALID``.
    """
    if not 0 <= speed < float("inf"):
        raise NewnormalError("SPEED_INVALID", f"{speed:g}", "play --speed", "0 or max (as fast as possible), or more")
    times = frame["time"].to_numpy()
    since = times - times[0] if len(times) else times
    due = now + (since / speed).astype(np.int64) if speed else np.full(len(times), now)
    if shift_to_now and len(times):
        first = int(due[-1] - since[-1]) if speed == 0 or speed > 1 else now
        frame = frame.with_columns(pl.col("time") + (first - int(times[0])))
    return Programme(frame, due)


def send(
    programme: Programme,
    sink: RecordSink,
    *,
    stop: threading.Event | None = None,
    clock: Clock | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Sends a programme.

    Args:
        programme: The programme.
        sink: Where the samples are sent.
        stop: Event that ends playing early.
        clock: The clock; ``None``: the wall clock.
        progress: Called with the number of records sent and the number of all records.

    Returns:
        Records sent.
    """
    stop, clock, sent = stop or threading.Event(), clock or WallClock(), 0
    frame, due = programme.frame, programme.due
    ticks = np.flatnonzero(np.diff(due // _TICK_MS)) + 1  # where a new tick of the wall clock begins
    cuts = np.unique(np.concatenate([ticks, np.arange(0, len(due), _ROWS), [len(due)]]))
    for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        clock.wait_until(int(due[end - 1]), stop)
        if stop.is_set():
            break
        sink.telemetry(frame[begin:end])
        sent = end
        if progress:
            progress(sent, frame.height)
    sink.flush()
    return sent
