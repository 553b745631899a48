"""Pods that come and go for a year: what is kept follows those that live, not those that ever lived."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.pods import days

STORES = ("detector", "incidents", "keys", "view")


def largest(months: list[dict[str, float]], name: str) -> float:
    return max(day[name] for day in months)


@pytest.mark.parametrize(
    ("number", "a_day"),
    [(30, 160), pytest.param(365, 2_740, marks=[pytest.mark.slow, pytest.mark.long], id="a million in a year")],
)
@pytest.mark.timeout(7_200)
def test_what_is_kept_is_flat_while_pods_come_and_go(tmp_path: Path, number: int, a_day: int) -> None:
    figures, deleted, refused, told = [], 0, 0, 0
    for site, each in days(tmp_path / "view", number, a_day):
        figures.append(each)
        deleted, refused, told = site.deleted, site.refused, site.told
    third = number // 3
    early, late = figures[third : 2 * third], figures[-third:]
    for name in STORES:
        assert largest(late, name) <= 1.1 * largest(early, name), name
    assert largest(late, "memory") <= 1.1 * largest(early, "memory")
    assert sum(largest(late, name) for name in ("detector", "incidents", "keys")) < 2**30
    assert deleted >= 2 * a_day * (number - 10), "each pod and its machine"
    assert (refused, told) == (0, 0), "no series is refused, and no planned end is an incident"
