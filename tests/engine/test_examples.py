"""The demonstrations show what they say they show."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.examples import NAMES, cards, network, sine, stocks, timetravel
from pipelines.cli.main import app


def test_a_sine_wave_sums_to_zero_in_event_time_and_not_in_processing_time() -> None:
    waves = sine.compute()
    assert len(waves.event_time) == 6
    assert all(abs(row["total"]) < 1e-9 for row in waves.event_time)
    assert sum(row["count"] for row in waves.processing_time) == len(waves.came)
    assert max(abs(row["total"]) for row in waves.processing_time) > 10


def test_a_replay_of_the_past_gives_the_same_panes() -> None:
    travel = timetravel.compute()
    assert len(travel.live) == 24
    for was, again in zip(travel.live, travel.replayed, strict=True):
        assert again | {"mean": 0} == was | {"mean": 0}
        assert again["mean"] == pytest.approx(was["mean"], rel=1e-12)


def test_each_payment_is_answered_and_only_that_of_the_stolen_card_is_declined() -> None:
    found = cards.compute()
    assert len(found.decisions) == len(found.came)
    (declined,) = [row for row in found.decisions if not row["approved"]]
    assert (declined["card"], declined["city_from"], declined["city_to"]) == ("stolen", "Dublin", "Athens")
    distance = cards.distance(cards.CITIES["Dublin"], cards.CITIES["Athens"])
    assert declined["speed"] == pytest.approx(distance * 3), "20 minutes later"


def test_a_second_consumer_counts_the_same_decisions() -> None:
    found = cards.compute()
    assert sum(row["payments"] for row in found.per_city) == len(found.came)
    (athens,) = [row for row in found.per_city if row["city_to"] == "Athens"]
    assert (athens["payments"], athens["declined"]) == (1, 1)
    assert sum(row["declined"] for row in found.per_city) == 1


def test_the_market_is_seen_whole() -> None:
    market = stocks.compute()
    prices = {s: [(r["time"], r["price"]) for _, _, r in market.ticks if r["symbol"] == s] for s in stocks.SYMBOLS}
    assert sum(row["count"] for row in market.statistics) == 2 * len(market.ticks), "each tick is in two windows"
    for row in market.statistics:
        mine = {t: p for t, p in prices[row["symbol"]] if row["window_start"] <= t < row["window_end"]}
        assert (row["min"], row["max"]) == (min(mine.values()), max(mine.values()))
        assert (mine[row["lowest_at"]], mine[row["highest_at"]]) == (row["min"], row["max"])
    for symbol, ticks in prices.items():  # a move of 5 % from the last one, worked out one tick after the other
        ends, last = [], ticks[0][1]
        for time, price in ticks:
            if abs(price / last - 1) > 0.05:
                ends.append(time)
                last = price
        moves = [row["window_end"] for row in market.moves if row["symbol"] == symbol]
        assert moves[: len(ends)] == ends
        assert len(ends) > 10
    mentioned = sum(row["text"].count("$") for _, _, row in market.posts)
    assert sum(row["n"] for row in market.mentions) == mentioned
    assert sum(row["n"] for row in market.warnings) == len(market.moves)
    counts = {(row["symbol"], row["window_end"]): row["n"] for row in market.warnings}
    others = {(row["symbol"], row["window_end"]): row["n"] for row in market.mentions}
    both = {(row["symbol"], row["window_end"]): (row["n"], row["n_right"]) for row in market.both}
    assert both == {key: (counts[key], others[key]) for key in counts.keys() & others.keys()}
    assert any(row["correlation"] is not None for row in market.correlation)


def test_sessions_are_told_early_and_end_after_silence() -> None:
    panes = network.compute().panes
    final = [row for row in panes if row["timing"] == "on_time"]
    assert len(final) == sum(map(len, network.BURSTS.values()))
    assert sum(row["samples"] for row in final) == len(network.compute().samples)
    for row in final:
        early = [r for r in panes if (r["host"], r["window_start"]) == (row["host"], row["window_start"])]
        sums = [r["sent"] for r in sorted(early, key=lambda r: r["pane"])]
        assert sums == sorted(sums)
    assert sum(row["timing"] == "early" for row in panes) > len(final)


@pytest.mark.parametrize("name", NAMES)
def test_each_example_is_a_command_that_writes_a_plot(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["example", name, "--out", str(tmp_path / "plot.png")], catch_exceptions=False)
    assert "see" in result.stdout
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    lines = (Path(str(importlib.import_module(f"engine.examples.{name}").__file__))).read_text().splitlines()
    assert len(lines) < 160
