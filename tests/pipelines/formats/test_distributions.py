"""The quantile of a histogram's buckets lies where the observations do: in the bucket that holds that rank."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.formats.distributions import bucket_quantile, of_interval

UNKNOWN = (-math.inf, math.inf)


@given(
    st.lists(st.floats(0.001, 100), min_size=1, max_size=200),
    st.lists(st.floats(0.01, 90), min_size=1, max_size=12, unique=True),
    st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)
def test_the_quantile_lies_in_the_bucket_of_the_observation_of_that_rank(
    values: list[float], bounds: list[float], share: float
) -> None:
    edges = sorted(bounds)
    counts = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1).tolist()
    found = bucket_quantile(share, edges, counts, (min(values), max(values)))
    assert found is not None
    rank = max(1, math.ceil(share * len(values) - 1e-9))
    true = sorted(values)[rank - 1]
    place = int(np.searchsorted(edges, true))
    assert (-math.inf if not place else edges[place - 1]) <= found
    assert found <= (math.inf if place == len(edges) else edges[place]) + 1e-9
    assert min(values) <= found <= max(values)


def test_it_never_falls_as_the_share_rises() -> None:
    found = [bucket_quantile(share / 100, (1.0, 2.0, 4.0), (3, 0, 5, 1), (0.2, 9.0)) for share in range(1, 100)]
    assert all(one <= other for one, other in pairwise(each for each in found if each is not None))


def test_as_in_prometheus_the_last_bucket_without_an_end_is_its_beginning() -> None:
    assert bucket_quantile(0.95, (0.1, 0.5), (1, 1, 98), UNKNOWN) == 0.5


def test_of_what_cannot_be_there_nothing_is_said() -> None:
    for bounds, counts in (((), (5,)), ((1.0,), ()), ((2.0, 1.0), (1, 1, 1)), ((1.0,), (0, 0)), ((1.0,), (1, 1, 1))):
        assert bucket_quantile(0.95, bounds, counts, UNKNOWN) is None
    assert list(of_interval(0, 0.0, (1.0,), (0, 0))) == []
    assert [part for part, *_ in of_interval(3, math.nan, (1.0,), (1, 2))] == [".p95"]
    assert [value for *_, value, _ in of_interval(4, 8.0, (), ())] == [pytest.approx(2.0)]
