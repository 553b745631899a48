"""Limits as people write them: what is no finite number is refused, and never a rule without its limit."""

from __future__ import annotations

import pytest

from engine.spec.errors import NewnormalError
from pipelines.contracts.limits import Limit, limit
from pipelines.contracts.records import Rule
from pipelines.contracts.settings import load
from pipelines.query.control_topics import checked

NOW = 1_800_000_000_000


@pytest.mark.parametrize(("text", "value"), [
    ("95 %", Limit(0.95, percent=True)), ("-5%", Limit(-0.05, percent=True)), ("1e3", Limit(1_000.0)),
    ("20 GiB", Limit(20.0 * 2**30)), ("5B", Limit(5.0)), ("0%", Limit(0.0, percent=True)),
])  # fmt: skip
def test_numbers_percentages_and_prefixes(text: str, value: Limit) -> None:
    assert limit(text, "--above") == value


@pytest.mark.parametrize("text", ["1e999", "-1e999%", "1e308P", "inf", "nan", "1,5", "1_000", "", "5 s", "50 m"])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    with pytest.raises(NewnormalError) as error:
        limit(text, "--above")
    assert error.value.code == "RULE_INVALID"


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_rule_whose_limit_json_cannot_hold_is_not_written_without_it(value: float) -> None:
    """It would report every window of every series."""
    with pytest.raises(NewnormalError) as error:
        checked(Rule, {"id": "a", "time": NOW, "above": value, "report": True}, load(), NOW)
    assert error.value.code == "RULE_INVALID"
