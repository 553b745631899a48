"""Reads several files and folders as series: each file is a machine, unless it or the user names machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from datagen.series.csv_format import USUAL, Reading
from datagen.series.csv_table import unreadable
from datagen.series.reader import read_series
from datagen.series.report import SeriesReport
from engine.spec.errors import NewnormalError

_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def read_files(
    paths: Sequence[str | Path], reading: Reading = USUAL, *, keep_missing: bool = False
) -> tuple[pl.DataFrame, tuple[SeriesReport, ...]]:
    """The values of all files, in order of time.

    A file without a column of machines is a machine with the name of the file, with folders before it where the name
    alone is not unique. If the user named one machine (`Reading.entity`), all such files belong to it. If there are
    several of them, the name of a file becomes the name of its metric, or its beginning if the file has several columns
    of values. If there are several files, a file that cannot be used is skipped, and its report says why.

    Args:
        paths: CSV files; folders stand for all ``.csv`` and ``.tsv`` files in and below them, also with ``.gz``.
        reading: See `read_series`.
        keep_missing: See `read_series`.

    Returns:
        Columns ``time``, ``entity``, ``metric`` and ``value`` as of `read_series`, no entity null; and a report of each
        file.

    Raises:
        NewnormalError: As `read_series`, if a path does not exist or no file can be used.
    """
    files = files_of(paths)
    names = names_of(files)
    frames, reports, failures = [], [], []
    for file, name in zip(files, names, strict=True):
        try:
            frame, report = read_series(file, reading, keep_missing=keep_missing)
        except NewnormalError as error:
            failures.append(error)
            reports.append(SeriesReport(str(file), 0, failure=f"{error.code}: {error.what}"))
            continue
        reports.append(report)
        frames.append(_named(frame, name, reading.entity, several=len(files) > 1))
    if not frames:
        raise failures[0]
    return pl.concat(frames).sort("time", maintain_order=True), tuple(reports)


def files_of(paths: Sequence[str | Path]) -> list[Path]:
    """The files that paths stand for, each once: of a folder all CSV files in and below it, by name.

    Raises:
        NewnormalError: ``SERIES_UNREADABLE`` if a path is not there, or a folder without CSV files.
    """
    files: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise unreadable(path, "there is no such file or folder")
        inside = (
            sorted(file for file in path.rglob("*") if file.name.lower().endswith(_ENDINGS))
            if path.is_dir()
            else [path]
        )
        if not inside:
            raise unreadable(path, "there is no CSV file in this folder", f"files ending in {', '.join(_ENDINGS)}")
        files |= {file.resolve(): file for file in inside}
    if not files:
        raise unreadable("", "no file was named", "one or more CSV files or folders")
    return list(files.values())


def names_of(files: Sequence[Path]) -> list[str]:
    """A name for each file: without its ending, with as many folders before it as it takes to tell all apart.

    >>> names_of([Path("a/cpu.csv"), Path("a/mem.csv")]), names_of([Path("x/a/cpu.csv"), Path("x/b/cpu.csv")])
    (['cpu', 'mem'], ['a/cpu', 'b/cpu'])
    """
    whole = [file.resolve() for file in files]
    for end in (_without_ending, lambda path: path.name):
        for depth in range(1, max((len(path.parts) for path in whole), default=1)):
            names = ["/".join([*path.parts[-depth:-1], end(path)]) for path in whole]
            if len(set(names)) == len(names):
                return names
    return [str(path) for path in whole]


def _without_ending(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return Path(name).stem if name != path.name else path.stem


def _named(frame: pl.DataFrame, name: str, entity: str | None, *, several: bool) -> pl.DataFrame:
    unnamed = pl.col("entity").is_null()
    if entity is None:
        return frame.with_columns(pl.col("entity").fill_null(name))
    metric = pl.lit(name) if frame["metric"].n_unique() == 1 else pl.lit(f"{name}.") + pl.col("metric")
    if several:
        frame = frame.with_columns(pl.when(unnamed).then(metric).otherwise("metric").alias("metric"))
    return frame.with_columns(pl.col("entity").fill_null(entity))
