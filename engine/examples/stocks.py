"""Stock ticks of two exchanges: windowed statistics, windows of price change, warnings and mentions, correlation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from engine.aggregates import Count, Last, Max, Mean, Min
from engine.examples.kit import T0, Came, Row, job, play, record, source
from engine.operators.correlation import Correlation
from engine.operators.interval_join import IntervalJoin
from engine.operators.sequence_windows import DeltaWindows
from engine.stream import Stream
from engine.windows import Sliding, Tumbling

Tick = record("Tick", "symbol", time=int, price=float)
_SPAN: dict[str, type] = {"time": int, "window_start": int, "window_end": int}
_VALUES = dict.fromkeys(("min", "max", "mean", "last", "price", "price_right", "correlation"), float)
Result = record("Result", "symbol", count=int, pairs=int, **_SPAN, **_VALUES)


@dataclass(frozen=True)
class Market:
    """Ticks as they came, and the results of each job."""

    ticks: list[Came]
    statistics: list[Row]
    moves: list[Row]
    warnings: list[Row]
    correlation: list[Row]


def compute() -> Market:
    """Two symbols, half of whose noise is shared; ACME falls by 8 % after 90 s, and the news say so."""
    rng, ticks = np.random.default_rng(5), []
    common = rng.normal(0, 0.15, (400, 2)) + rng.normal(0, 0.15, (400, 1))
    prices = 100 + np.cumsum(common, axis=0)
    prices[180:, 0] *= 0.92
    for i, row in enumerate(prices):
        for symbol, price in zip(("ACME", "BETA"), row, strict=True):
            exchange, time = ("north", "south")[int(rng.integers(2))], T0 + i * 500
            came = time + int(rng.integers(0, 900))
            ticks.append((came, exchange, {"time": time, "symbol": symbol, "price": float(price)}))
    news = [(T0 + s * 1000, "news", {"time": T0 + s * 1000, "symbol": "ACME", "price": -1.0}) for s in (30, 88, 95)]
    both = Stream.read(source("north", Tick, "1s")).merge(Stream.read(source("south", Tick, "1s"))).key_by("symbol")
    statistics = both.window(Tumbling("10s")).aggregate(
        count=Count(), min=Min("price"), max=Max("price"), mean=Mean("price")
    )
    changes = both.window(DeltaWindows("price", 3.0)).aggregate(count=Count(), last=Last("price"))
    falls = both.filter("price < 0.95 * 100").join(Stream.read(source("news", Tick)), IntervalJoin("-5s", "0s"))
    acme, beta = (both.filter(f"symbol = '{name}'").map(symbol="'ACME/BETA'") for name in ("ACME", "BETA"))
    rolling = acme.join(beta, Correlation("price", "price", Sliding("30s", every="1s")))
    jobs = [job(stream, Result) for stream in (statistics, changes, falls, rolling)]
    return Market(ticks, *(play(each, ticks if each is not jobs[2] else ticks + news, 10_000) for each in jobs))


def plot(market: Market, figure: Figure) -> None:
    """Prices with their bands, moves and warnings; the correlation below."""
    above, below = figure.subplots(2, 1, sharex=True)
    for symbol, color in (("ACME", "C0"), ("BETA", "C1")):
        some = [row for row in market.statistics if row["symbol"] == symbol]
        times = [(row["window_start"] - T0) / 1000 + 5 for row in some]
        above.plot(times, [row["mean"] for row in some], color=color, label=symbol)
        above.fill_between(times, [r["min"] for r in some], [r["max"] for r in some], color=color, alpha=0.2)
        ends = [((row["window_end"] - T0) / 1000, row["last"]) for row in market.moves if row["symbol"] == symbol]
        above.plot(*zip(*ends, strict=True), "v", color=color)
    above.plot([(row["time"] - T0) / 1000 for row in market.warnings], [row["price"] for row in market.warnings], "rx")
    above.set(title="prices; moves by 3 (triangles); falls soon after a mention (crosses)")
    above.legend()
    rolling = sorted(market.correlation, key=lambda row: row["window_end"])
    below.plot([(row["window_end"] - T0) / 1000 for row in rolling], [row["correlation"] for row in rolling])
    below.set(title="rolling correlation of 30 s", xlabel="event time, s")
