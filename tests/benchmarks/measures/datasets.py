"""Reads the labelled data sets from disk: the folders `nab/`, `cloud_monitoring/`, `asd/` and `web_kpis/`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from engine.spec.errors import NewnormalError
from models.numbers.arrays import Array
from tests.benchmarks.measures.nab import Profile

ASD_STEP = 300_000
"""Milliseconds between two rows of ASD, which has no dates."""


@dataclass(frozen=True)
class Nab:
    """The data set NAB: 58 series, their labelled windows, and three scoring profiles.

    Args:
        values: Columns ``entity`` (the file), ``metric``, ``time`` (epoch milliseconds), ``value``, in file order.
        windows: First and last row of each labelled window, by file.
        profiles: The scoring profiles, as published.
    """

    values: pl.DataFrame
    windows: dict[str, list[tuple[int, int]]]
    profiles: list[Profile]


def nab(folder: Path) -> Nab:
    """Reads NAB as published: ``data/``, ``labels/combined_windows.json``, ``profiles.json``.

    Raises:
        NewnormalError: ``FILE_UNUSABLE`` if the folder has no such files.
    """
    windows = json.loads(_there(folder / "labels" / "combined_windows.json").read_text())
    weights = {
        name: profile["CostMatrix"] for name, profile in json.loads((folder / "profiles.json").read_text()).items()
    }
    frames, rows = [], {}
    for file, spans in windows.items():
        frame = _series(folder / "data" / file).with_columns(entity=pl.lit(file))
        place = {time: row for row, time in reversed(list(enumerate(frame["time"].to_list())))}
        ends = pl.Series(spans, dtype=pl.List(pl.String)).list.explode().str.to_datetime().dt.epoch("ms").to_list()
        rows[file] = [(place[first], place[last]) for first, last in zip(ends[::2], ends[1::2], strict=True)]
        frames.append(frame)
    profiles = [Profile(name, w["tpWeight"], w["fnWeight"], w["fpWeight"]) for name, w in weights.items()]
    return Nab(pl.concat(frames).select("entity", "metric", "time", "value"), rows, profiles)


def cloud_monitoring(folder: Path) -> pl.DataFrame:
    """Reads all series of Microsoft's cloud monitoring data: columns as in `Nab.values`, and ``label`` (0 or 1)."""
    files = sorted(_there(folder).glob("*/*.csv"))
    frames = [_series(file).with_columns(entity=pl.lit(file.stem)).sort("time", maintain_order=True) for file in files]
    return pl.concat(frames).select("entity", "metric", "time", "value", "label")


def web_kpis(folder: Path) -> pl.DataFrame:
    """Reads the KPIs of web services, one value a minute: columns as in `cloud_monitoring`."""
    files = sorted(_there(folder).glob("*.parquet"))
    frames = [pl.read_parquet(file).sort("time").with_columns(entity=pl.lit(file.stem)) for file in files]
    return pl.concat(frames).select(
        "entity",
        pl.lit("value").alias("metric"),
        pl.col("time") * 1000,
        "value",
        pl.col("label").cast(pl.Float64),
    )


@dataclass(frozen=True)
class Machine:
    """A machine of ASD: training and test values, shape (rows, metrics), and labels of the test rows, shape (rows,)."""

    name: str
    train: Array
    test: Array
    labels: Array

    def values(self) -> pl.DataFrame:
        """The training rows, then the test rows, with the columns of `Nab.values`; the time starts at 0."""
        whole = np.concatenate([self.train, self.test])
        rows, metrics = whole.shape
        time = np.repeat(np.arange(rows, dtype=np.int64) * ASD_STEP, metrics)
        names = np.tile([f"metric-{index:02d}" for index in range(metrics)], rows)
        return pl.DataFrame({"entity": self.name, "metric": names, "time": time, "value": whole.ravel()})


def asd(folder: Path) -> list[Machine]:
    """Reads the machines of ASD."""
    machines = []
    for file in sorted(_there(folder).glob("*.npz")):
        with np.load(file) as parts:
            machines.append(
                Machine(
                    file.stem, parts["train"].astype(float), parts["test"].astype(float), parts["label"].astype(float)
                )
            )
    return machines


def _there(path: Path) -> Path:
    if not path.exists():
        raise NewnormalError("FILE_UNUSABLE", f"{path} does not exist", "option --data", "a folder with the data set")
    return path


def _series(file: Path) -> pl.DataFrame:
    raw = pl.read_csv(file, infer_schema_length=None)
    raw = raw.rename({name: name.lower() for name in raw.columns})
    time = pl.col("timestamp").str.replace("T", " ").str.strip_suffix("Z").str.to_datetime("%Y-%m-%d %H:%M:%S%.f")
    number = [pl.col(name).cast(pl.Float64) for name in ("value", "label") if name in raw.columns]
    return raw.select(*number, time=time.dt.epoch("ms"), metric=pl.lit("value"))
