"""Calibration: on series that stay as they are, verdicts are as rare as they say, whatever the series' distribution."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.benchmarks.calibration import FAMILIES, LEVELS, MACHINES, MONTH, Shares, joined_shares, shares

SERIES, WARM, COUNTED = 60, 1000, 2500
"""Of each family; windows that are not counted, and that are. `newnormal bench calibration` counts more of them."""


JUDGED = [family for family in FAMILIES if family not in ("ratio, beta", "categorical")]
"""Beta-binomials with long tails take long, and four values have few probabilities: the bench has these two."""


@cache
def _shares() -> dict[str, Shares]:
    return shares(JUDGED, SERIES, WARM, COUNTED, seed=11)


@cache
def _joined(metrics: int) -> dict[str, Shares]:
    return joined_shares(list(MACHINES), SERIES, metrics, WARM, COUNTED, seed=11)


@pytest.mark.parametrize("family", JUDGED)
@pytest.mark.parametrize("level", LEVELS[:2])
def test_the_share_of_windows_below_a_probability_is_about_that_probability(family: str, level: float) -> None:
    _is_about(_shares()[family], level)


@pytest.mark.parametrize("metrics", [2, 5])
@pytest.mark.parametrize("machines", MACHINES)
def test_so_it_is_of_the_joined_verdicts_on_machines(machines: str, metrics: int) -> None:
    """The evidence of the model of all metrics grows while it learns how they go together: probability must not."""
    for level in LEVELS[:2]:
        _is_about(_joined(metrics)[machines], level)


def _is_about(rarity: Shares, level: float) -> None:
    place = LEVELS.index(level)
    share, error = rarity.below[place], rarity.errors[place]
    assert level / 1.5 - 2 * error < share < level * 1.5 + 2 * error
    assert level / 2 < share < level * 2


def test_one_window_in_ten_thousand_is_below_one_in_ten_thousand() -> None:
    """Over all families: of one there are 15 such windows here."""
    share = float(np.mean([family.below[2] for family in _shares().values()]))
    assert 1e-4 / 1.5 < share < 1e-4 * 1.5


@pytest.mark.parametrize("family", [name for name in JUDGED if name != "lognormal" and FAMILIES[name].kind == 0])
def test_at_most_one_false_alarm_a_series_and_month(family: str) -> None:
    assert _shares()[family].alarms * MONTH <= 1.0
