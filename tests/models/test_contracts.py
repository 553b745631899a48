"""Every detector keeps every contract, on series of every shape."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.config import DetectorConfig
from models.detector import Detector
from tests.models.contracts import CONTRACTS, Model, batch_is_one_at_a_time, nothing_is_out_of_bounds

MODELS: dict[str, Callable[[], Model]] = {
    "utc": lambda: Detector(DetectorConfig()),
    "stockholm": lambda: Detector(DetectorConfig(timezone="Europe/Stockholm")),
}


def _values(steps: int = 80) -> np.ndarray:
    rng = np.random.default_rng(1)
    t = np.arange(steps)
    noise = rng.normal(50, 5, steps)
    outlier, holes = noise.copy(), noise.copy()
    outlier[60], outlier[61] = 1e6, -1e6
    holes[rng.random(steps) < 0.2] = np.nan
    holes[60], holes[61] = np.inf, -np.inf
    columns = [
        noise,
        outlier,
        holes,
        np.full(steps, 7.0),
        np.zeros(steps),
        np.where(t == 60, 1.0, 0.0),
        np.round(rng.normal(3, 1, steps)),
        rng.lognormal(10, 2, steps),
        rng.normal(0, 1, steps) * 1e300,
        rng.normal(0, 1, steps) * 1e-300,
        -rng.gamma(2, 3, steps),
        np.where(t < 50, noise, noise + 200),
        np.where(t % 2 == 0, 1e308, -1e308),
        np.full(steps, np.nan),
    ]
    return np.column_stack(columns)


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_the_detector_keeps_the_contract(name: str, contract: Callable[[Model, np.ndarray], None]) -> None:
    contract(MODELS[name](), _values())


_FLOATS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1.0, 1e308, -1e308, 5e-324]),
    st.floats(-100, 100),
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(_FLOATS, _FLOATS, _FLOATS), min_size=13, max_size=20))
def test_any_floats_whatsoever_give_verdicts_within_bounds_that_depend_on_their_own_series_only(
    rows: list[tuple[float, float, float]],
) -> None:
    values = np.array(rows)
    nothing_is_out_of_bounds(MODELS["utc"](), values)
    batch_is_one_at_a_time(MODELS["utc"](), values)
