"""What many machines do at once: how many of how many, which metric, in which direction."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import polars as pl

from pipelines.contracts.records.incident import AffectedSeries
from pipelines.contracts.records.news import LIVING, LIVING_EVERY, PARTITION
from pipelines.contracts.records.novelty import JOINED
from pipelines.jobs.incidents.episode import LOGS
from pipelines.jobs.incidents.severity import FLEET

COUNTS = pl.Schema({"site": pl.String, "entity": pl.String, "at": pl.Int64, "machines": pl.Int64, "ahead": pl.Boolean})
"""The columns of counts: of the machines of each partition, at instants; or of the replicas of a workload in the time
of `LIVING_EVERY` before. One that is ahead of the watermark has its own time, and does not count yet."""


@dataclass(frozen=True)
class Living:
    """How many machines of a site sent something, at multiples of `LIVING_EVERY`.

    Attributes:
        counts: By the instant.
        replicas: How many replicas a workload had, by its name and the end of the time in which it had so many.

    >>> Living({600_000: 80, 1_200_000: 120}).at(1_300_000), Living({}).at(5)
    (120, None)
    """

    counts: Mapping[int, int]
    replicas: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def at(self, instant: int) -> int | None:
        """The number at an instant, epoch milliseconds; ``None`` if it was not counted then."""
        times = sorted(self.counts)
        place = bisect_right(times, instant)
        known = place and times[place - 1] > instant - 2 * LIVING_EVERY
        return self.counts[times[place - 1]] if known else None

    def replicas_at(self, workload: str, instants: Collection[int]) -> int | None:
        """The most replicas that a workload had about some instants, epoch milliseconds; ``None`` if nobody counted.

        >>> Living({}, {("shop/cart", 600_000): 6}).replicas_at("shop/cart", [590_000, 600_001])
        6
        """
        found = (self.replicas.get((workload, _up(at))) for at in instants)
        return max((number for number in found if number is not None), default=None)


NOT_COUNTED = Living({})


def counted(before: pl.DataFrame, news: pl.DataFrame, since: int, now: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Takes the counts out of the news: the counts known now, from an instant on, and the other news.

    Args:
        before: The counts known before, columns `COUNTS`; of earlier versions without ``ahead``.
        news: Records of `News`, with the column ``site``.
        since: Counts of earlier instants are forgotten, epoch milliseconds.
        now: The watermark: what was counted later does not count yet.
    """
    is_count, ahead = pl.col("metric").cast(pl.String) == LIVING, pl.lit(True).alias("ahead")
    more = news.filter(is_count).select("site", "entity", ahead, at="window_end", machines="actual")
    known = before if "ahead" in before.columns else before.with_columns(ahead=False)
    both = pl.concat([each.select(pl.col(name).cast(kind) for name, kind in COUNTS.items()) for each in (known, more)])
    due = pl.col("ahead") & (pl.col("at") <= now)
    both = both.with_columns(at=pl.when(due).then(_up(pl.col("at"))).otherwise("at"), ahead=pl.col("ahead") & ~due)
    both = both.group_by("site", "entity", "at", "ahead", maintain_order=True).agg(pl.col("machines").max())
    return both.filter(pl.col("at") >= since).select(*COUNTS), news.filter(~is_count)


def living(counts: pl.DataFrame) -> Living:
    """The numbers of machines of all partitions, and of replicas, that were counted up to the watermark."""
    counts = counts.filter(~pl.col("ahead"))
    of_site = pl.col("entity").str.starts_with(PARTITION)
    summed = counts.filter(of_site).group_by("at").agg(pl.col("machines").sum())
    replicas = counts.filter(~of_site).select("entity", "at", "machines").rows()
    return Living(
        dict(summed.select("at", "machines").rows()), {(name, at): number for name, at, number in replicas}
    )  # fmt: skip


def all_at_once(series: Sequence[AffectedSeries], machines: Collection[str], living: int | None) -> str:
    """What most machines of an incident do, such as "87 of 120 machines: net.tx up, 2.3 × the usual"; or nothing.

    Args:
        series: All series of the incident.
        machines: The machines of the incident.
        living: How many machines the site has; ``None``: that is not known.
    """
    alike: dict[tuple[str, bool], list[AffectedSeries]] = defaultdict(list)
    for one in series:
        if one.metric not in (JOINED, LOGS) and one.kind in _OWN and one.actual is not None and one.typical is not None:
            alike[one.metric, one.actual > one.typical].append(one)
    metric, up = max(alike, key=lambda key: (len(alike[key]), key), default=("", False))
    own = alike.get((metric, up), [])
    if len(own) < FLEET or 2 * len(own) < len(machines):
        return ""
    middle = sorted(own, key=_ratio)[len(own) // 2]
    more = sum(2 * len(each) >= len(own) for each in alike.values()) - 1
    others = f", and {more} more metric{'s' if more > 1 else ''}" if more else ""
    of = f" of {living}" if living is not None and living >= len(own) else ""
    return f"{len(own)}{of} machines: {metric} {'up' if up else 'down'}, {middle.change}{others}"


_Instant = TypeVar("_Instant", int, pl.Expr)


def _up(at: _Instant) -> _Instant:
    """The multiple of `LIVING_EVERY` at an instant or after it."""
    return -(-at // LIVING_EVERY) * LIVING_EVERY


_OWN = ("anomaly", "state_change", "new_normal")


def _ratio(one: AffectedSeries) -> tuple[float, str]:
    actual, typical = one.actual or 0.0, one.typical or 0.0
    return (actual / typical if typical else actual), one.entity
