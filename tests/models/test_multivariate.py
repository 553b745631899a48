"""One machine's metrics together: what is expected of each given the others, and what breaks it."""

from collections.abc import Callable

import numpy as np
import pytest

from models.machine.conditional import expect, learn_regressions
from models.machine.config import MultivariateConfig
from models.machine.multivariate import MachineVerdicts, Multivariate
from models.machine.state import Machine, machine_at
from models.machine.tail import PowerTail, learn_power, power_evidence
from models.records import Record, constants
from tests.models.contracts import CONTRACTS, Model

STEP = 300_000


def _stream(model: Multivariate, values: np.ndarray) -> tuple[list[MachineVerdicts], dict[str, np.ndarray]]:
    n = values.shape[1]
    state, rows = model.new_state(n), np.arange(n)
    return [model.step(state, rows, np.full(n, i * STEP), value) for i, value in enumerate(values)], state


def _correlated(steps: int, machines: int, width: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    loads, noise = rng.normal(size=(steps, machines, 2)), rng.normal(size=(steps, machines, width))
    return 50 + loads @ rng.normal(size=(2, width)) + 0.3 * noise


def _unusual() -> np.ndarray:
    rng, steps = np.random.default_rng(1), 80
    values = _correlated(steps, 8, 4)
    values[60, 0, 1] = 1e6
    values[:, 1] = np.where(rng.random((steps, 4)) < 0.3, np.nan, values[:, 1])
    values[60, 1], values[61, 1] = np.inf, -np.inf
    values[:, 2] = 7.0
    values[60:, 2, 0] = 8.0
    values[:, 3] *= 1e300
    values[:, 4] *= 1e-300
    values[:, 5, 2:] = np.nan
    values[:50, 6, 1] = np.nan
    values[:, 7] = np.nan
    return values


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_the_model_of_a_machine_keeps_the_contract(contract: Callable[[Model, np.ndarray], None]) -> None:
    contract(Multivariate(MultivariateConfig(), 4), _unusual())


def test_without_forgetting_the_moments_are_those_of_the_sample() -> None:
    values = _correlated(400, 1, 5)[:, 0]
    model = Multivariate(MultivariateConfig(forget=0.0), 5)
    state = _stream(model, values[:, None])[1]
    np.testing.assert_allclose(state["mean"][0], values.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(state["variance"][0], values.var(axis=0), rtol=1e-9)
    np.testing.assert_allclose(state["now"].reshape(5, 5), np.corrcoef(values.T), atol=1e-5)
    lagged = [[np.corrcoef(values[1:, i], values[:-1, j])[0, 1] for j in range(5)] for i in range(5)]
    np.testing.assert_allclose(state["then"].reshape(5, 5), lagged, atol=0.02)


def _regressions(correlation: np.ndarray, lagged: np.ndarray) -> tuple[Record, Machine]:
    """The constants, and a machine whose metrics are correlated so; what its regressions follow from is certain."""
    model = Multivariate(MultivariateConfig(noise=0.3, prior=1e-9), len(correlation))
    state = model.new_state(1)
    state["count"][:], state["age"][:] = 1000.0, 1000.0
    state["now"][0], state["then"][0] = correlation.reshape(-1), lagged.reshape(-1)
    given, machine = constants(all=model.config).all, machine_at(model.machines(state), 0)
    learn_regressions(given, machine, np.ones(len(correlation), np.bool_))
    return given, machine


def _expected(
    constants_: Record, machine: Machine, z: np.ndarray, present: np.ndarray, before: np.ndarray, linked: float
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals of a window, and what was expected."""
    machine.before[:] = before
    outputs = np.empty(len(z)), np.empty(len(z))
    expect(constants_, machine, z.copy(), present, linked, outputs)
    return outputs


def _by_hand(joint: np.ndarray, point: np.ndarray, target: int, others: list[int]) -> tuple[float, float]:
    weights = np.linalg.solve(joint[np.ix_(others, others)], joint[others, target])
    return float(weights @ point[others]), float(np.sqrt(joint[target, target] - weights @ joint[others, target]))


@pytest.mark.parametrize("missing", [[], [2], [0, 3]], ids=str)
def test_what_is_expected_is_the_gaussian_conditional_given_the_metrics_that_are_there(missing: list[int]) -> None:
    rng, width = np.random.default_rng(0), 4
    factors = rng.normal(size=(8, 20))
    joint = np.corrcoef(factors)
    joint[width:, width:] = joint[:width, :width]
    fixed, machine = _regressions(joint[:width, :width], joint[:width, width:])
    joint = joint + 0.3 * np.eye(8)
    z, before = rng.normal(size=width), rng.normal(size=width)
    present = np.ones(width, bool)
    present[missing] = False
    residual, expected = _expected(fixed, machine, z, present, before, 1.0)
    point = np.concatenate([z, before])
    for target in range(width):
        if target in missing:
            assert residual[target] == 0
            continue
        given = [other for other in range(8) if other != target and other not in missing]
        mean, spread = _by_hand(joint, point, target, given)
        assert expected[target] == pytest.approx(mean, abs=1e-4)
        assert residual[target] == pytest.approx((z[target] - mean) / spread, abs=1e-3)


def test_after_a_gap_only_the_metrics_of_the_same_window_count() -> None:
    rng, width = np.random.default_rng(0), 3
    joint = np.corrcoef(rng.normal(size=(6, 20)))
    joint[3:, 3:] = joint[:3, :3]
    given, machine = _regressions(joint[:3, :3], joint[:3, 3:])
    z = rng.normal(size=width)
    residual, expected = _expected(given, machine, z, np.ones(width, bool), rng.normal(size=width), 0.0)
    mean, spread = _by_hand(joint[:3, :3] + 0.3 * np.eye(3), z, 0, [1, 2])
    assert expected[0] == pytest.approx(mean, abs=1e-4)
    assert residual[0] == pytest.approx((z[0] - mean) / spread, abs=1e-3)


def test_a_metric_that_breaks_with_the_others_is_noticed_and_named_though_its_value_is_common() -> None:
    values = _correlated(1000, 20, 6)
    values[-1, :, 2] = 100 - values[-1, :, 2]
    off = np.abs(values[-1, :, 2] - 50) > 1.5
    verdicts, _ = _stream(Multivariate(MultivariateConfig(), 6), values)
    assert (verdicts[-1].evidence["residual"][off] > 6).all()
    assert (verdicts[-1].shares.argmax(axis=1)[off] == 2).all()
    assert np.mean([v.record_score >= 50 for v in verdicts[100:-1]]) < 0.002


def test_columns_that_no_metric_uses_change_nothing_but_rounding() -> None:
    values = _correlated(300, 3, 4)
    wide = np.full((300, 3, 7), np.nan)
    wide[:, :, [0, 2, 3, 6]] = values
    narrow, padded = (
        _stream(Multivariate(MultivariateConfig(), width), v)[0][-1] for width, v in ((4, values), (7, wide))
    )
    np.testing.assert_allclose(padded.evidence["residual"], narrow.evidence["residual"], rtol=1e-3)
    np.testing.assert_allclose(padded.expected[:, [0, 2, 3, 6]], narrow.expected, rtol=1e-3)


def test_a_metric_that_comes_later_does_not_alarm_and_is_learned_quickly() -> None:
    values = _correlated(1500, 20, 5)
    values[:1000, :, 4] = np.nan
    verdicts, _ = _stream(Multivariate(MultivariateConfig(), 5), values)
    assert max(float(v.record_score.max()) for v in verdicts[1000:1050]) < 60
    error = np.std([v.expected[:, 4] - x for v, x in zip(verdicts[1100:], values[1100:, :, 4], strict=True)])
    assert error < 0.7 * values[1100:, :, 4].std()


def test_a_window_of_weight_zero_teaches_nothing_of_what_is_normal() -> None:
    values = _correlated(200, 2, 3)
    model = Multivariate(MultivariateConfig(), 3)
    state = _stream(model, values)[1]
    before = {name: column.copy() for name, column in state.items()}
    model.learn(state, np.arange(2), np.full(2, 200 * STEP), values[-1] + 100, np.zeros(2))
    for name in ("mean", "variance", "now", "then", "tail.shape", "tail.rate", "residual.edge"):
        np.testing.assert_array_equal(state[name], before[name], err_msg=name)


def test_the_power_tail_finds_the_power() -> None:
    tail, rng = PowerTail(0.3, 20.0, 1 / 2000), np.random.default_rng(0)
    given, state = constants(all=tail).all, tail.new_state(1, 200)
    for _ in range(1500):
        for metric, residual in enumerate(np.sqrt(np.exp(rng.exponential(0.5, 200)) - 1)):
            learn_power(given, state["shape"][0], state["rate"][0], metric, residual, 1.0)
    far = np.sqrt(np.exp(0.5 * np.log(1000.0)) - 1)
    told = [power_evidence(*each, far) for each in zip(state["shape"][0], state["rate"][0], strict=True)]
    assert np.mean(told) == pytest.approx(np.log(1000.0), rel=0.05)


def test_probabilities_of_a_stationary_machine_are_calibrated() -> None:
    rng, n, width, probabilities = np.random.default_rng(0), 250, 5, []
    model = Multivariate(MultivariateConfig(), width)
    state, rows, loading = model.new_state(n), np.arange(n), rng.normal(size=(n, 2, width))
    for step in range(2400):
        value = np.einsum("nk,nkw->nw", rng.normal(size=(n, 2)), loading) + 0.5 * rng.normal(size=(n, width))
        verdict = model.step(state, rows, np.full(n, step * 60_000), value)
        if step >= 1200:
            probabilities.append(verdict.probability)
    for p in (1e-2, 1e-3, 1e-4):
        share = (np.array(probabilities) < p).mean() / p
        assert 1 / 1.5 < share < 1.5, (p, share)


@pytest.mark.parametrize(("windows", "bounded"), [(9, False), (10, True), (400, True)])
def test_from_the_eleventh_window_on_an_outlier_at_most_doubles_the_variance(windows: int, bounded: bool) -> None:
    """It is learned as one of √n standard deviations, n being the windows before."""
    values = np.random.default_rng(0).normal(50, 2, (windows, 1, 2))
    model = Multivariate(MultivariateConfig(forget=0.0), 2)
    state = _stream(model, values)[1]
    before, variance = state["mean"][0, 0], values[:, 0, 0].var()
    model.learn(state, np.array([0]), np.array([windows * STEP]), np.full((1, 2), 1e9))
    step = np.sqrt(windows * variance) if bounded else 1e9 - before
    assert state["mean"][0, 0] - before == pytest.approx(step / (windows + 1), rel=1e-3)
    assert (state["variance"][0, 0] <= 2 * variance) == bounded


def test_a_machine_whose_state_is_damaged_stops_no_other_machine() -> None:
    """Compiled code refuses to invert what is not finite, where NumPy gives NaN: it must not end the micro-batch."""
    rng, model = np.random.default_rng(3), Multivariate(MultivariateConfig(), 4)
    both, alone = model.new_state(2), model.new_state(1)
    for name in ("now", "static", "dynamic"):
        both[name][0] = np.nan
    for window in range(60):
        value, time = rng.normal(50, 2, (1, 4)), np.array([window * 60_000])
        value[0, window % 5 % 4] = np.nan if window % 5 == 0 else value[0, window % 5 % 4]
        verdicts = model.step(both, np.arange(2), np.repeat(time, 2), np.repeat(value, 2, axis=0))
        assert verdicts.record_score[1] == model.step(alone, np.array([0]), time, value).record_score[0]


def test_what_is_taken_for_missing_values_does_not_grow_from_gap_to_gap() -> None:
    """Many metrics, few windows and many gaps: the regression on the window before is explosive.

    What it says of a gap was taken for a value without a bound. It grew from gap to gap beyond 1e18, and then the
    matrices could not be inverted: *Matrix is singular*, from compiled code.
    """
    rng, width, steps, machines = np.random.default_rng(0), 32, 150, 12
    load = rng.normal(size=(steps, machines, 1))
    values = 50 + 3 * load + rng.normal(size=(steps, machines, width))
    first = rng.integers(0, 60, (machines, width))  # metrics come one after the other
    absent = (np.arange(steps)[:, None, None] < first) | (rng.random(values.shape) < 0.25)
    values[absent] = np.nan
    verdicts, state = _stream(Multivariate(MultivariateConfig(), width), values)
    # no value lies farther out than 10 standard deviations, so no gap does
    assert np.abs(state["before"]).max() < 10
    assert np.isfinite(verdicts[-1].record_score).all()
    # a precision has a positive diagonal
    dynamic = state["dynamic"].reshape(machines, width, width)
    assert (np.diagonal(dynamic, axis1=1, axis2=2) > 0).all()


def test_a_machine_whose_stored_regressions_are_singular_is_judged() -> None:
    """States that were stored before have such matrices."""
    values = _correlated(40, 1, 4)
    model = Multivariate(MultivariateConfig(), 4)
    state = _stream(model, values)[1]
    for name in ("static", "dynamic"):
        state[name][:] = 0.0
    state["then"][:] = 1e15
    row, gap = np.array([0]), values[-1].copy()
    gap[0, :2] = np.nan
    for i in range(40, 60):
        verdict = model.step(state, row, np.array([i * STEP]), gap if i % 2 else values[i - 40])
        assert np.isfinite(verdict.record_score).all()
    healed = state["dynamic"].reshape(4, 4)
    assert (np.diag(healed) > 0.1).all()
