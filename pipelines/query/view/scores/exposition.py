"""Scores as text for Prometheus, or as OpenMetrics.

The samples have no timestamps: of a series that has not changed Prometheus would take none a second time, and would
count it as gone five minutes later (docs/decisions/0068).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import polars as pl
from prometheus_client import openmetrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder

from pipelines.query.view.scores.labels import labels


class Metric(NamedTuple):
    """A metric of each series.

    Attributes:
        name: Its name.
        column: The column of `Scores.rows`.
        about: What it is.
    """

    name: str
    column: str
    about: str


METRICS = (
    Metric("newnormal_score", "record_score", "Score of novelty of the newest window, 0 to 100"),
    Metric("newnormal_state_score", "state_score", "How far the window lies from what was normal before, 0 to 100"),
    Metric("newnormal_typical", "typical", "The value that was expected"),
    Metric("newnormal_lower", "lower", "Lower bound of the band in which the value was expected"),
    Metric("newnormal_upper", "upper", "Upper bound of that band"),
    Metric("newnormal_incidents_open", "open", "1 while an incident of the series is open, else 0"),
)
"""What is told of each series; all are gauges."""


def exposition(rows: pl.DataFrame, version: str, whole: dict[str, tuple[str, float]], accept: str) -> tuple[bytes, str]:
    """The text of a scrape and its content type.

    Args:
        rows: As in `Scores`.
        version: The version of the chain.
        whole: Text and value of each further gauge, which has no labels, by name.
        accept: The header ``Accept``.
    """
    _, kind = choose_encoder(accept)
    is_open_metrics = kind.startswith("application/openmetrics-text")
    told = [_label_text(*series, version) for series in rows.select("entity", "metric").iter_rows()]
    begin = pl.Series("labels", told, dtype=pl.String)
    parts = []
    for name, column, about in METRICS:
        lines = rows.select(pl.concat_str(pl.lit(name), begin, pl.lit(" "), pl.col(column).cast(pl.String))).to_series()
        parts += [_head(name, about), *lines.drop_nulls().str.join("\n").drop_nulls()]
    parts += [f"{_head(name, about)}\n{name} {value!r}" for name, (about, value) in whole.items()]
    parts += ["# EOF"] if is_open_metrics else []
    text = "\n".join(part for part in parts if part) + "\n"
    return text.encode(), _OPEN_METRICS if is_open_metrics else CONTENT_TYPE_PLAIN_0_0_4


_OPEN_METRICS = openmetrics.exposition.CONTENT_TYPE_LATEST


def _head(name: str, about: str) -> str:
    return f"# HELP {name} {about}\n# TYPE {name} gauge"


@lru_cache(1 << 17)
def _label_text(entity: str, metric: str, version: str) -> str:
    r"""The labels of a series in braces, escaped as both formats ask for.

    >>> _label_text('a"b', "c\\d", "v1")
    '{machine="a\\"b",metric="c\\\\d",version="v1"}'
    """
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels(entity, metric, version)) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
