"""All metrics of a machine together, by hand: the strongest of them, none of them, and who gets which share."""

from __future__ import annotations

import numpy as np
import pytest

from models.config import DetectorConfig
from models.joined import Joined, JoinedVerdicts

STEP = 60_000


def _last(evidence: list[float], judged: list[bool] | None = None) -> JoinedVerdicts:
    """The verdict on such a window after 60 quiet ones of one machine."""
    joined, n = Joined(DetectorConfig()), len(evidence)
    state, row = joined.new_state(1), np.zeros(len(evidence), np.int64)
    for window in range(60):
        joined.join(state, row, row + window * STEP, np.full(n, 0.5), np.ones(n, np.bool_))
    there = np.array(judged if judged is not None else [True] * n)
    return joined.join(state, row, row + 60 * STEP, np.array(evidence), there)


@pytest.mark.parametrize("metrics", [1, 2, 5, 20])
def test_the_strongest_of_n_metrics_counts_as_much_less_as_n_tries_are_worth(metrics: int) -> None:
    """Bonferroni: the chance that one of n is so strange is at most n times its own."""
    verdict = _last([12.0] + [0.5] * (metrics - 1)).verdicts
    assert verdict.evidence["strongest"][0] == pytest.approx(12 - np.log(metrics))


def test_metrics_without_a_word_to_say_have_equal_shares() -> None:
    assert _last([0.0] * 4).shares.tolist() == [0.25] * 4
    assert _last([3.0, 1.0, 0.0, 0.0]).shares.tolist() == [0.75, 0.25, 0.0, 0.0]


def test_a_machine_none_of_whose_metrics_is_judged_is_no_news() -> None:
    verdict = _last([0.0, 0.0], [False, False]).verdicts
    assert (verdict.record_score[0], verdict.probability[0]) == (0.0, 1.0)
    assert all(channel[0] == 0 for channel in verdict.evidence.values())
