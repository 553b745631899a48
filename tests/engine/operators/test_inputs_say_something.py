"""The random inputs of these tests are not vacuous: at least a third of them give results, for every operator."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.reference import interpret
from tests.engine.operators.conftest import any_batches
from tests.engine.operators.test_operators_match_reference import JOBS


@pytest.mark.parametrize("name", JOBS)
def test_a_third_of_the_inputs_give_results(name: str) -> None:
    topics, job = JOBS[name]
    found: list[bool] = []

    @settings(
        max_examples=15,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def count(data: st.DataObject) -> None:
        found.append(bool(interpret(job("0s"), data.draw(any_batches(topics))).rows))

    count()
    assert sum(found) >= len(found) / 3
