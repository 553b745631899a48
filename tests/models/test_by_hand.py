"""Formulas of the models at the values where they change, each against the same worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from models.config import DetectorConfig
from models.families.hierarchy import Peers
from models.records import constants
from models.regimes import axis
from models.series.alarm import bar, stuck_from
from models.templates.config import TemplateConfig
from models.templates.model import Templates
from models.templates.tables import LogWindow

ROW = np.array([0])


def test_of_a_series_that_was_only_ever_0_a_value_is_its_own_unit_on_the_axis() -> None:
    for value in (0.0, 2.0, -50.0):
        place = axis.place(value, 0.0)
        assert place == pytest.approx(np.arcsinh(value))
        assert axis.value(place, 0.0) == pytest.approx(value)
        assert axis.finest(0.1, value, 0.0) == pytest.approx(0.1 / np.sqrt(1 + value**2))


def test_a_threshold_of_0_announces_what_is_frozen_as_one_of_1_does() -> None:
    """A score of 1 is 13 / 99 nats."""
    every = [constants(all=DetectorConfig(threshold=threshold)).all for threshold in (0.0, 1.0, 100.0)]
    bars = [stuck_from(config, bar(config, 300_000.0)) for config in every]
    assert bars == pytest.approx([13 / 99, 13 / 99, 13 * 99])


def test_how_alike_peers_vary_is_what_their_log_variances_differ_beyond_chance() -> None:
    """Smyth (2004): the log of a variance known from d degrees of freedom varies by about 2 / d of itself."""
    logs, count = np.array([-1.0, 0.0, 1.2]), np.full(3, 11.0)
    squares = np.exp(logs) * (count - 1.5)
    peers = Peers.of(np.zeros(3, np.int64), 1, count, np.array([1.0, 2.0, 3.0]), squares)
    assert peers.likeness[0] == pytest.approx(1 / (np.var(logs, ddof=1) - 2 / 10))


def test_one_burst_of_a_template_is_learned_as_ten_times_what_was_expected_at_most() -> None:
    rng, model = np.random.default_rng(0), Templates(TemplateConfig())
    tables = model.new_tables(1, 1, 1, 1)

    def window(count: float) -> LogWindow:
        return LogWindow(ROW, ROW, ROW, ROW, ROW, np.array([count]))

    for _ in range(200):
        model.step(tables, window(float(rng.poisson(5.0))))
    before = float(tables.pairs["events"][0])
    verdict = model.step(tables, window(1000.0))
    assert verdict.persists[0] == 0
    usual = max(float(verdict.evidence[name][0]) for name in ("mix", "burst", "silence"))
    learned = float(tables.pairs["events"][0]) - before * (1 - 1 / 2000)
    assert learned == pytest.approx(6 / usual * 10 * (1 + verdict.typical[0]), rel=1e-3)
