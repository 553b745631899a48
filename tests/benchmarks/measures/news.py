"""From verdicts to the episodes that incidents are made of, as the jobs do it, without Spark or Kafka."""

from __future__ import annotations

import polars as pl

from pipelines.jobs.detectors.metrics.context import learned_from
from pipelines.jobs.detectors.worst import reported
from pipelines.jobs.incidents.episode import Episode
from pipelines.jobs.incidents.verdicts import PARTS, ROWS, SITE, episodes, joined, newest, parts

NEWS = reported() | (pl.col("revision") > 0)
"""An expression: true for the verdicts that the incidents job reads."""


def news_of(verdicts: pl.DataFrame, site: str) -> pl.DataFrame:
    """The verdicts on metrics that the incidents job reads, with the columns of `ROWS`.

    Args:
        verdicts: The columns of `pipelines.jobs.detectors.metrics.detection.SCHEMA`.
        site: The name of the site.
    """
    news = learned_from(verdicts.filter(NEWS))
    return news.with_columns(pl.lit(site).alias(SITE), level=pl.lit(None, pl.Int64)).select(
        pl.col(name).cast(kind) for name, kind in ROWS.items()
    )


def episodes_of(rows: pl.DataFrame) -> list[Episode]:
    """The episodes that news tell of; ``rows`` as from `news_of`."""
    return episodes(joined(pl.DataFrame(schema=PARTS), parts(newest(pl.DataFrame(schema=ROWS), rows))))
