"""The detector with the families of counts, ratios and few values: chosen, prescribed, and right about their series."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from models.config import DetectorConfig
from models.detector import Detector
from models.families.choice import NONE, Family, MetricKind
from models.families.suited import About
from models.numbers.arrays import Array, Columns, Ints
from models.verdicts import SeriesVerdicts
from tests.models.contracts import CONTRACTS, STEP, Model, run, same


class As:
    """A detector that knows what kind of metrics it judges."""

    def __init__(self, kind: MetricKind, family: int = NONE, samples: float = 1.0) -> None:
        self.detector, self.metrics = Detector(DetectorConfig()), (kind, family, samples)

    def new_state(self, n: int) -> Columns:
        return self.detector.new_state(n)

    def score(self, state: Columns, rows: Ints, time: Ints, value: Array) -> SeriesVerdicts:
        return self.detector.score(state, rows, time, value, None, self.about(len(rows)))

    def learn(self, state: Columns, rows: Ints, time: Ints, value: Array) -> None:
        self.detector.learn(state, rows, time, value, None, self.about(len(rows)))

    def step(self, state: Columns, rows: Ints, time: Ints, value: Array) -> SeriesVerdicts:
        return self.detector.step(state, rows, time, value, None, self.about(len(rows)))

    def about(self, n: int) -> About:
        kind, family, samples = self.metrics
        return About(np.full(n, kind, np.int64), np.full(n, family, np.int64), np.full(n, samples))


PRESCRIBED = [Family.COUNT, Family.RATIO, Family.CATEGORICAL]


def _values(steps: int = 26) -> Array:
    rng, t = np.random.default_rng(1), np.arange(steps)
    counts, ratios = rng.poisson(4, steps).astype(float), rng.beta(2, 30, steps)
    spike, holes = counts.copy(), counts.copy()
    spike[20] = 1e9
    holes[rng.random(steps) < 0.3] = np.nan
    holes[20:22] = np.inf, -np.inf
    columns = [counts, ratios, spike, holes, np.zeros(steps), (t == 20) * 1.0, np.full(steps, np.nan)]
    columns += [rng.normal(0, 1e300, steps), np.where(t % 2 == 0, 1e308, -1e308), np.full(steps, -5e-324)]
    return np.column_stack([*columns, rng.lognormal(20, 9, steps)])


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
@pytest.mark.parametrize("family", PRESCRIBED, ids=lambda family: family.name)
def test_a_prescribed_family_keeps_the_contract(family: Family, contract: Callable[[Model, Array], None]) -> None:
    contract(As(MetricKind.GAUGE, family), _values())


def _chosen(values: Array, kind: MetricKind) -> set[Family]:
    state = run(As(kind), values)[1]
    return {Family(code) for code in state["family.family"].tolist()}


def test_the_kind_and_the_values_decide_on_the_family() -> None:
    rng, shape = np.random.default_rng(0), (60, 4)
    gauge = MetricKind.GAUGE
    for values in (rng.normal(50, 3, shape), rng.poisson(2, shape) + 0.0, rng.beta(2, 9, shape), np.full(shape, 4.2)):
        assert _chosen(values, gauge) == {Family.MIXTURE}, (
            "a gauge below 1 need not be a ratio, nor a whole one a count"
        )
    assert _chosen(rng.beta(2, 90, shape), MetricKind.RATIO) == {Family.RATIO}
    assert _chosen(rng.poisson(0.4, shape) + 0.0, MetricKind.COUNT) == {Family.COUNT}
    assert _chosen(rng.poisson(0.4, shape) + 0.5, MetricKind.COUNT) == {Family.MIXTURE}, "no counts are these"
    assert _chosen(rng.normal(50, 3, shape), MetricKind.RATIO) == {Family.MIXTURE}, "nor ratios these"


def test_gauges_are_judged_bit_for_bit_as_by_the_mixture_alone() -> None:
    values = _values(100)
    free, alone = run(As(MetricKind.GAUGE), values)[0], run(As(MetricKind.GAUGE, Family.MIXTURE), values)[0]
    for one, other in zip(free, alone, strict=True):
        same(one, other)


def test_the_mean_of_a_windows_samples_is_judged_as_the_events_that_it_counts() -> None:
    events = np.random.default_rng(0).poisson(2.0, (80, 5)).astype(float)
    means, sums = run(As(MetricKind.COUNT, samples=8.0), events / 8)[0][-1], run(As(MetricKind.COUNT), events)[0][-1]
    np.testing.assert_allclose(means.upper * 8, sums.upper)
    np.testing.assert_allclose(means.typical * 8, sums.typical)
    np.testing.assert_allclose(means.evidence["point"], sums.evidence["point"], rtol=1e-6)


def test_bounds_of_rare_events_are_counts_and_hold_what_they_say() -> None:
    rng, n, steps = np.random.default_rng(2), 40, 700
    values = rng.poisson(0.1, (steps, n)).astype(float)
    verdicts = run(As(MetricKind.COUNT), values)[0]
    late = range(steps // 2, steps)
    upper = np.array([verdicts[step].upper for step in late])
    outside = np.mean([(values[step] > verdicts[step].upper).mean() for step in late])
    assert (upper == np.round(upper)).all()
    assert upper.mean() < 4
    assert outside < 1e-3


def test_a_burst_of_rare_events_is_found_and_quiet_series_stay_quiet() -> None:
    rng, n, steps = np.random.default_rng(3), 40, 700
    model = As(MetricKind.COUNT)
    values = rng.poisson(0.5, (steps, n)).astype(float)
    verdicts, state = run(model, values)
    late = np.array([verdict.record_score for verdict in verdicts[steps // 2 :]])
    assert (late >= 50).mean() < 1e-3
    burst = model.score(state, np.arange(n), np.full(n, steps * STEP), np.full(n, 12.0))
    assert (burst.record_score >= 50).mean() > 0.9


@pytest.mark.parametrize(("kind", "usual", "now"), [(MetricKind.COUNT, 2.0, 14.0), (MetricKind.RATIO, 0.02, 0.2)])
def test_what_an_operator_accepts_is_typical_at_once(kind: MetricKind, usual: float, now: float) -> None:
    rng, n, model = np.random.default_rng(4), 5, As(kind)

    def draw(level: float) -> Array:
        return (
            rng.poisson(level, (60, n)) + 0.0
            if kind == MetricKind.COUNT
            else rng.beta(500 * level, 500 * (1 - level), (60, n))
        )

    state = run(model, draw(usual))[1]
    rows, time = np.arange(n), np.full(n, 100 * STEP)
    before = model.score(state, rows, time, np.full(n, now))
    for value in draw(now)[:12]:
        model.step(state, rows, time, value)
    model.detector.accept(state, rows)
    after = model.score(state, rows, time, np.full(n, now))
    assert (before.evidence["point"] > 4).all()
    assert (after.evidence["point"] < 2).all()
    assert ((after.typical > now / 2) & (after.typical < now * 2)).all()
