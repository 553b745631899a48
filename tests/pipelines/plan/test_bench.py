"""The fits of `newnormal bench plan` give back the costs that made the figures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from engine.runtime.shard import ROWS_A_MESSAGE
from pipelines.plan.coefficients import read
from tests.benchmarks import plan as bench


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_fit_finds_the_costs_of_a_sample_and_of_a_window(sample: float, window: float) -> None:
    runs = [(4e6, windows, 4e6 * sample + windows * window) for windows in (6e4, 6e5)]
    assert bench.fit(*runs) == (approx(sample, rel=1e-4, abs=1e-6), approx(window, rel=1e-3, abs=1e-4))


def test_a_fit_to_noise_gives_no_negative_cost() -> None:
    assert min(bench.fit((4e6, 6e4, 20.0), (4e6, 6e5, 10.0))) >= 0


def test_the_bytes_of_the_shipped_coefficients_are_those_of_messages_today() -> None:
    known = read()
    for name, value, _ in bench.messages():
        assert known[name] == approx(value, rel=0.05), name
    rows = ROWS_A_MESSAGE / 1_000
    assert known["telemetry.sample"] * rows ** known["telemetry.exponent"] == approx(17.35, rel=0.05)
