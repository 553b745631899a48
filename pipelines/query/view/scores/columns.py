"""What the view knows of the scores of many series at one instant of event time, in columns.

Of the window that ends at that instant, the verdict says the numbers if the view has it; else the belief does that was
last said before (right to 25 points and a quarter of the band's width, as docs/state-view.md says). Whether an incident
is open is always a matter of belief.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import orjson
import polars as pl

from pipelines.contracts.globs import matches
from pipelines.contracts.records.novelty import ALARM_KINDS
from pipelines.query.view.database import Database
from pipelines.query.view.keys import BELIEF, STATE, VERDICT
from pipelines.query.view.windows import Ring

NUMBERS = ("record_score", "state_score", "typical", "lower", "upper")
"""The numbers of a series, by the names of `Novelty`."""

_SAID = pl.Struct(
    {
        **dict.fromkeys(("host.name", "metric", "kind", "incident.state"), pl.String),
        "@timestamp": pl.Int64,
        **dict.fromkeys(NUMBERS, pl.Float64),
    }
)
"""What is read of a belief or a verdict, by its JSON names."""


@dataclass(frozen=True)
class Chosen:
    """Which series are wanted.

    Args:
        globs: Globs ``machine/metric``; a series is wanted if one of them matches.
        novel: True if only series are wanted that are novel: those whose belief is an alarm or an open incident.
        most: The most series.
    """

    globs: tuple[str, ...] = ("*/*",)
    novel: bool = False
    most: int = 10_000


@dataclass(frozen=True)
class Scores:
    """The scores of some series.

    Attributes:
        rows: A row a series: ``entity``, ``metric``, the columns of `NUMBERS` (null: not known), and ``open``: 1 if an
            incident of the series is open, else 0. What is novel comes first, by score; then by machine and metric.
        left_out: How many wanted series are missing, as there are more than the bound.
    """

    rows: pl.DataFrame
    left_out: int


def scores(database: Database, ring: Ring, wanted: Chosen, judged: int, before: bool = False) -> Scores:
    """The scores of the series that are wanted. What is gone (docs/state-view.md) has none.

    Args:
        database: The database of a view.
        ring: The places of windows in it.
        wanted: Which series.
        judged: End of the windows up to which the detector has judged, epoch milliseconds; `NEVER` if it is not known.
        before: True for the scores as of ``judged``, without what was said of later windows; else the newest ones.
    """
    entries = list(database.scan(STATE))
    series = [key[1:] for key, _ in entries]
    said = _read([value for _, value in entries]).with_columns(series=pl.Series(series, dtype=pl.Binary))
    said = said.filter(
        pl.col("host.name").is_not_null() & pl.col("metric").is_not_null() & pl.col("@timestamp").is_not_null()
    )
    said = said.filter(_matching(said, wanted.globs))
    if before:
        said = _as_of(database, said, judged)
    is_open = pl.col("incident.state").eq_missing("open")
    gone = (pl.col("kind") == "absence") & pl.col("incident.state").eq_missing("closed")
    novel = is_open | pl.col("kind").is_in(ALARM_KINDS)
    said = said.filter(~gone).with_columns(open=is_open.cast(pl.Float64), novel=novel)
    if wanted.novel:
        said = said.filter("novel")
    worst = pl.when("novel").then(-pl.col("record_score")).otherwise(0.0)
    kept = said.sort(pl.col("novel").not_(), worst, "host.name", "metric").head(wanted.most)
    rows = _with_verdicts(database, ring, kept, judged, before)
    return Scores(rows, said.height - kept.height)


def _with_verdicts(database: Database, ring: Ring, said: pl.DataFrame, judged: int, before: bool) -> pl.DataFrame:
    """The rows of `Scores`: the numbers of verdicts where the view has them."""
    end = said["@timestamp"]
    at = np.full(said.height, judged) if before else np.maximum(end.to_numpy(), judged)
    now, then = _verdicts(database, ring, said, at), _verdicts(database, ring, said, end.to_numpy())
    closed = pl.when(pl.col("open") == 0).then(0.0)
    known = said.with_columns(state_score=pl.coalesce(then["state_score"], closed))
    numbers = [pl.when(now["known"]).then(now[name]).otherwise(pl.col(name)).alias(name) for name in NUMBERS]
    return known.select(pl.col("host.name").alias("entity"), "metric", *numbers, "open")


def _verdicts(database: Database, ring: Ring, said: pl.DataFrame, ends: np.ndarray) -> pl.DataFrame:
    """The numbers of the verdicts on the windows of some series that end at some instants; ``known``: there is one."""
    keys = [VERDICT + name + ring.place(end) for name, end in zip(said["series"], ends.tolist(), strict=True)]
    values = [value or b"null" for value in database.get_many(keys)]
    known = (pl.col("@timestamp") == pl.Series(ends)).fill_null(value=False)
    numbers = [pl.when(known).then(pl.col(name)).alias(name) for name in NUMBERS]
    return _read(values).select(known.alias("known"), *numbers)


def _as_of(database: Database, said: pl.DataFrame, judged: int) -> pl.DataFrame:
    """What had been said of each series up to an instant; series of which nothing had been said are left out."""
    later = said.filter(pl.col("@timestamp") > judged)
    earlier = []
    for name in later["series"]:
        told = (value for _, value in database.scan(BELIEF + name))
        earlier.append(max((v for v in told if _end(v) <= judged), key=_end, default=b"null"))
    names = later.select("series", "host.name", "metric")
    found = _read(earlier).drop("host.name", "metric").hstack(names).filter(pl.col("@timestamp").is_not_null())
    return pl.concat([said.filter(pl.col("@timestamp") <= judged), found.select(said.columns)])


def _end(value: bytes) -> int:
    return int(orjson.loads(value)["@timestamp"])


def _read(values: Sequence[bytes]) -> pl.DataFrame:
    """Messages of JSON as columns; ``null``, and what is no belief and no verdict, is a row of nulls."""
    texts = pl.Series(values, dtype=pl.Binary).cast(pl.String)
    try:
        return texts.str.json_decode(_SAID).struct.unnest()
    except pl.exceptions.ComputeError:
        return pl.concat([_read_one(text) for text in texts])


def _read_one(text: str) -> pl.DataFrame:
    for each in (text, "null"):
        with suppress(pl.exceptions.ComputeError):
            return pl.Series([each]).str.json_decode(_SAID).struct.unnest()
    raise AssertionError("null is JSON")


def _matching(said: pl.DataFrame, globs: Sequence[str]) -> pl.Series:
    """For each row whether one of the globs matches its series."""
    if "*/*" in globs:
        return pl.Series(np.ones(said.height, np.bool_))
    names = said.select(pl.concat_str("host.name", pl.lit("/"), "metric")).to_series()
    return pl.Series(np.logical_or.reduce([matches(glob, names) for glob in globs], initial=False))
