"""Stock ticks of two exchanges: statistics, moves of 5 %, warnings and mentions counted, joined and correlated."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from engine.aggregates import Count, Last, Max, MaxBy, Mean, Min, MinBy
from engine.examples.kit import T0, Came, Play, Row, Runner, here, job, record, source
from engine.operators.correlation import Correlation
from engine.operators.interval_join import IntervalJoin
from engine.operators.sequence_windows import DeltaWindows, Mask
from engine.operators.turn import Turn
from engine.stream import Stream
from engine.windows import Sliding, Tumbling

SYMBOLS = ("ACME", "BETA")
TICKS, STEP = 720, 500
Tick = record("Tick", "symbol", time=int, price=float)
Post = record("Post", "author", time=int, text=str)
_SPAN: dict[str, type] = {"window_start": int, "window_end": int}
_VALUES = dict.fromkeys(("min", "max", "mean", "last"), float)
Result = record("Result", "symbol", count=int, lowest_at=int, highest_at=int, **_SPAN, **_VALUES)
Counts = record("Counts", "symbol", n=int, **_SPAN)
Both = record("Both", "symbol", window_end=int, n=int, n_right=int)
Rolling = record("Rolling", "symbol", pairs=int, correlation=float, **_SPAN)


@dataclass(frozen=True)
class RelativeMove(DeltaWindows):
    """Delta windows with a user's own measure: a new window begins when the price differs by a share from the first."""

    def breaks(self, turn: Turn) -> Mask:
        return np.asarray(np.abs(self.value(turn) / turn.state["first"] - 1) > self.threshold)


@dataclass(frozen=True)
class Market:
    """The ticks and posts in order of arrival, and the results of each job."""

    ticks: list[Came]
    posts: list[Came]
    statistics: list[Row]
    moves: list[Row]
    warnings: list[Row]
    mentions: list[Row]
    both: list[Row]
    correlation: list[Row]


def symbols_in(posts: pl.DataFrame) -> pl.DataFrame:
    """A record for each symbol that is mentioned in the text of a post."""
    symbols = posts["text"].map_elements(lambda text: re.findall(r"\$([A-Z]+)", text), pl.List(pl.String))
    return posts.select("time", symbol=symbols.cast(pl.List(pl.String))).explode("symbol").drop_nulls("symbol")


def ticks_and_posts() -> tuple[list[Came], list[Came]]:
    """Six minutes of two symbols with partly shared noise; in volatile minutes there are more posts."""
    rng, ticks, posts = np.random.default_rng(5), [], []
    wild = 1 + 2.5 * (np.sin(np.arange(TICKS) / 60) > 0)
    noise = rng.normal(0, 0.0035, (TICKS, 2)) + rng.normal(0, 0.0035, (TICKS, 1))
    prices = 100 * np.exp(np.cumsum(noise * wild[:, None], axis=0))
    for i, row in enumerate(prices):
        time = T0 + i * STEP
        for symbol, price in zip(SYMBOLS, row, strict=True):
            exchange, came = ("north", "south")[int(rng.integers(2))], time + int(rng.integers(0, 900))
            ticks.append((came, exchange, {"time": time, "symbol": symbol, "price": float(price)}))
        for _ in range(int(rng.poisson(0.12 * wild[i]))):
            text = " and ".join(f"${symbol}" for symbol in SYMBOLS[: int(rng.integers(1, 3))])
            posts.append(
                (time, "posts", {"time": time, "author": f"a{int(rng.integers(9))}", "text": f"look at {text}!"})
            )
    return ticks, posts


def compute(run: Runner = here) -> Market:
    """Six jobs: three on ticks, one on posts, and two that join what the jobs of warnings and of mentions write."""
    ticks, posts = ticks_and_posts()
    both = Stream.read(source("north", Tick, "1s")).merge(Stream.read(source("south", Tick, "1s"))).key_by("symbol")
    prices = {"min": Min("price"), "max": Max("price"), "mean": Mean("price")}
    extremes = {"lowest_at": MinBy("time", by="price"), "highest_at": MaxBy("time", by="price")}
    statistics = both.window(Sliding("10s", every="5s")).aggregate(count=Count(), **prices, **extremes)
    moves = both.window(RelativeMove("price", 0.05)).aggregate(count=Count(), last=Last("price"))
    warnings = moves.window(Tumbling("30s")).aggregate(n=Count())
    texts = Stream.read(source("posts", Post)).flat_map(symbols_in)
    mentions = texts.key_by("symbol").window(Tumbling("30s")).aggregate(n=Count())
    warned = Stream.read(source("warnings", Counts, time="window_end")).key_by("symbol")
    mentioned = Stream.read(source("mentions", Counts, time="window_end"))
    joined = warned.join(mentioned, IntervalJoin("0s", "0s")).select("symbol", "window_end", "n", "n_right")
    rolling = warned.join(mentioned, Correlation("n", "n", Sliding("3m", every="30s")))
    upstream = ("warnings", "mentions")
    plays = {
        "statistics": Play(job(statistics, Result, "statistics"), ticks, 20_000),
        "moves": Play(job(moves, Result, "moves"), ticks, 20_000),
        "warnings": Play(job(warnings, Counts, "warnings"), ticks, 20_000),
        "mentions": Play(job(mentions, Counts, "mentions"), posts, 20_000),
        "both": Play(job(joined, Both, "both"), every=20_000, reads=upstream),
        "correlation": Play(job(rolling, Rolling, "correlation"), every=20_000, reads=upstream),
    }
    return Market(ticks, posts, **run(plays))


def plot(market: Market, figure: Figure) -> None:
    """Prices with their bands, moves and extremes; warnings and mentions; their correlation."""
    above, middle, below = figure.subplots(3, 1, sharex=True)
    for symbol, color in zip(SYMBOLS, ("C0", "C1"), strict=True):
        shown = [row for row in market.statistics if row["symbol"] == symbol]
        times = [(row["window_start"] - T0) / 1000 + 5 for row in shown]
        above.plot(times, [row["mean"] for row in shown], color=color, label=symbol)
        above.fill_between(times, [r["min"] for r in shown], [r["max"] for r in shown], color=color, alpha=0.2)
        peak = max(shown, key=lambda row: row["max"])
        above.plot((peak["highest_at"] - T0) / 1000, peak["max"], "^", color=color)
        ends = [((row["window_end"] - T0) / 1000, row["last"]) for row in market.moves if row["symbol"] == symbol]
        above.plot([time for time, _ in ends], [price for _, price in ends], "x", color=color)
        pairs = [row for row in market.both if row["symbol"] == symbol]
        ends_of = [(row["window_end"] - T0) / 1000 for row in pairs]
        middle.plot(ends_of, [row["n"] for row in pairs], "o-", color=color, label=f"{symbol}: warnings")
        middle.plot(ends_of, [row["n_right"] for row in pairs], "s:", color=color, label=f"{symbol}: mentions")
        points = [r for r in market.correlation if r["symbol"] == symbol and r["correlation"] is not None]
        below.plot([(r["window_end"] - T0) / 1000 for r in points], [r["correlation"] for r in points], color=color)
    above.set(title="prices; moves by 5 % (crosses); the highest price (triangles)")
    middle.set(title="warnings and mentions in 30 s")
    below.set(title="correlation of warnings and mentions over 3 minutes", xlabel="event time, s", ylim=(-1, 1))
    above.legend()
    middle.legend(fontsize="small")
