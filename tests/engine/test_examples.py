"""The demonstrations show what they say they show."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.examples import NAMES, cards, network, sine, stocks, timetravel
from engine.examples.kit import T0
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


def test_only_the_stolen_card_is_too_fast() -> None:
    (alert,) = cards.compute()[1]
    assert (alert["card"], alert["city_from"], alert["city_to"]) == ("stolen", "Dublin", "Athens")
    assert alert["speed"] == pytest.approx(cards.distance(cards.CITIES["Dublin"], cards.CITIES["Athens"]) * 3)


def test_the_market_is_seen_whole() -> None:
    market = stocks.compute()
    assert sum(row["count"] for row in market.statistics) == len(market.ticks), "ticks of both exchanges"
    prices = [r["price"] for _, _, r in market.ticks if r["symbol"] == "ACME" and r["time"] < T0 + 10_000]
    first = min((r for r in market.statistics if r["symbol"] == "ACME"), key=lambda r: r["window_start"])
    assert (first["min"], first["max"]) == (min(prices), max(prices))
    assert len(market.moves) > 1
    assert market.warnings
    assert {row["symbol"] for row in market.warnings} == {"ACME"}
    assert all(T0 + 88_000 <= row["time"] <= T0 + 100_000 for row in market.warnings)
    assert len(market.correlation) > 100


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
    assert len(lines) < 80
